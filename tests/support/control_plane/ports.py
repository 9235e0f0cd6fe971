"""Ports for servers that start later or restart. They are below the ports that the kernel gives to clients."""

from __future__ import annotations

import os
import socket
from random import SystemRandom
from typing import Final

_PORTS: Final = range(10_000, 32_768)  # Linux gives 32768 to 60999: net.ipv4.ip_local_port_range
_WORKERS: Final = 4  # --maxprocesses of the Makefile: a port that one worker has drawn is never another one's
_WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
_given: set[int] = set()


def free_port(host: str) -> int:
    """A port of this address that nobody listens on, and that this function has not returned before."""
    while True:
        port = SystemRandom().choice(_PORTS[_WORKER::_WORKERS])
        if port in _given:
            continue
        try:
            socket.create_server((host, port)).close()
        except OSError:
            continue
        _given.add(port)
        return port
