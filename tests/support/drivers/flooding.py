"""Floods of connections to a process: open files for them, and whether answers to others are in time meanwhile."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.waits import MAX_WAIT_SECONDS

_PROBE_SECONDS: Final = 1.0  # timeoutSeconds of a kubelet's probe, where none is given
_LATE_MOST: Final = 2  # in a row: at the third a kubelet acts (failureThreshold), and a busy machine may delay one
_LISTENING: Final = "0A"  # tcp_states.h
PROBE_EVERY: Final = 50  # connections
PROBE: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HALF: Final = b"GET /healthz HTTP/1.1\r\n" + 2 * (b"X: " + b"x" * 8_000 + b"\r\n")  # a head without its end


@contextmanager
def files(count: int) -> Iterator[None]:
    """Permit this process, and those that it starts, so many open files beside those that it has already."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + sum(1 for _ in Path("/proc/self/fd").iterdir()), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def silent(port: int, number: int = 0) -> socket.socket:
    """A connection that has sent nothing; each `number` up to 50,000 has its own address."""
    here = (f"127.0.{1 + number // 200}.{1 + number % 200}", 0)
    return socket.create_connection(("127.0.0.1", port), MAX_WAIT_SECONDS, source_address=here if number else None)


class Late:
    """How many answers in a row were late."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def note(self, seconds: float) -> None:
        """An answer took so long."""
        self._in_a_row = self._in_a_row + 1 if seconds >= _PROBE_SECONDS else 0
        assert self._in_a_row <= _LATE_MOST


def open_connections(*ports: int) -> int:
    """Return how many connections processes hold at these ports. proc_net_tcp.rst: local address, state, inode."""
    at = {f"{port:04X}" for port in ports}
    sockets = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(each[1][-4:] in at and each[3] != _LISTENING and each[9] != "0" for each in sockets)
