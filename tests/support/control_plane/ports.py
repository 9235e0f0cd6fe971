"""Ports for servers that start later or restart. The kernel gives none of these ports to an outgoing connection."""

from __future__ import annotations

import socket
from random import SystemRandom
from typing import Final

_PORTS: Final = range(10_000, 32_768)  # Linux gives 32768 to 60999: net.ipv4.ip_local_port_range


def free_port(host: str) -> int:
    """A port of this address that nobody listens on, and that no connection of another test can take meanwhile."""
    while True:
        port = SystemRandom().choice(_PORTS)
        try:
            socket.create_server((host, port)).close()
        except OSError:
            continue
        return port
