"""The load: a few keep-alive TLS connections with one review in flight on each, from one thread.

Cheap enough to keep a server's core busy from another one: an answer is known by its length alone.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from itertools import cycle
from time import perf_counter
from typing import NamedTuple

from process import cpu_seconds
from support.drivers.http_calls import parse_reply
from support.drivers.serving import Client


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
    """`connections` to one server, each asking one of `requests` after the other, again and again.

    All of them must have answers of one length.
    """

    def __init__(self, pid: int, port: int, trust: ssl.SSLContext, requests: Sequence[bytes], connections: int) -> None:
        self._pid = pid
        self._requests = cycle(requests)
        self._clients = [Client(port, trust) for _ in range(connections)]
        answers = [client.ask(next(self._requests)) for client in self._clients]
        assert {answer.status for answer in answers} == {200}, answers[0]
        self.answer = answers[0]
        lengths = {self._measure_answer(request) for request in requests}
        assert len(lengths) == 1, lengths
        self._length = lengths.pop()

    def _measure_answer(self, request: bytes) -> int:
        """The length of the answer on the wire."""
        client = self._clients[0]
        client.send(request)
        got = b""
        while (parsed := parse_reply(got)) is None:
            got += client.socket.recv(65536)
        return parsed[1]

    def run(self, seconds: float) -> Slice:
        """Ask for so long."""
        requests, length, latencies = self._requests, self._length, []
        sockets = [client.socket for client in self._clients]
        cpu, began = cpu_seconds(self._pid), perf_counter()
        sent = []
        for sock in sockets:
            sent.append(perf_counter())
            sock.sendall(next(requests))
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
                sock.sendall(next(requests))
        took, cpu = perf_counter() - began, cpu_seconds(self._pid) - cpu
        for sock in sockets:
            got = b""
            while len(got) < length:
                got += sock.recv(65536) or _gone()
        return Slice(took, cpu, latencies)


def _gone() -> bytes:
    raise EOFError("the server hung up")
