"""The load: a few keep-alive TLS connections with one review in flight on each, from one thread.

Cheap enough to keep a server's core busy from another one: an answer is known by its length alone.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from serving import Client, parse_reply

_CLOCK_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Slice(NamedTuple):
    """What one slice of time showed."""

    seconds: float
    cpu_seconds: float
    latencies: list[float]

    @property
    def per_second(self) -> float:
        """Reviews a second."""
        return len(self.latencies) / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of the server's CPU per review."""
        return self.cpu_seconds / len(self.latencies) * 1e6

    @property
    def busy(self) -> float:
        """The share of the time that the server's core worked."""
        return self.cpu_seconds / self.seconds


class Load:
    """`connections` to one server, each asking `request` again and again."""

    def __init__(self, pid: int, port: int, trust: ssl.SSLContext, request: bytes, connections: int) -> None:
        self._pid = pid
        self._request = request
        self._clients = [Client(port, trust) for _ in range(connections)]
        answers = [client.ask(request) for client in self._clients]
        assert {answer.status for answer in answers} == {200}, answers[0]
        self.answer = answers[0]
        self._length = self._measure_answer()

    def _measure_answer(self) -> int:
        """The length of an answer on the wire: a constant, for the same request."""
        client = self._clients[0]
        client.send(self._request)
        got = b""
        while (parsed := parse_reply(got)) is None:
            got += client.socket.recv(65536)
        return parsed[1]

    def run(self, seconds: float) -> Slice:
        """Ask for so long."""
        request, length, latencies = self._request, self._length, []
        sockets = [client.socket for client in self._clients]
        cpu, began = cpu_seconds(self._pid), perf_counter()
        sent = []
        for sock in sockets:
            sent.append(perf_counter())
            sock.sendall(request)
        until, now = began + seconds, began
        while now < until:
            for index, sock in enumerate(sockets):
                got = sock.recv(65536)
                while len(got) < length:
                    got += sock.recv(65536) or _gone()
                assert got.startswith(b"HTTP/1.1 200"), got
                now = perf_counter()
                latencies.append(now - sent[index])
                sent[index] = now
                sock.sendall(request)
        took, cpu = perf_counter() - began, cpu_seconds(self._pid) - cpu
        for sock in sockets:
            got = b""
            while len(got) < length:
                got += sock.recv(65536) or _gone()
        return Slice(took, cpu, latencies)


def _gone() -> bytes:
    raise EOFError("the server hung up")


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS_PER_SECOND
