"""A proxy between the program and the API server that notes each request, and can hold back a watch.

The program speaks plain HTTP with it, and it speaks TLS with the API server: so it sees each request by its path. A
watch that is held back is one that lags: its connection stays, and what has happened since is not told.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from support.control_plane.control_plane import ControlPlane, User
from support.fakes.proxy import Address, Proxy, Streams

_PIECE_BYTES: Final = 65536


class Asked(NamedTuple):
    """A request of the program's."""

    method: str
    path: str
    query: dict[str, str]

    @property
    def is_watch(self) -> bool:
        """Whether it is a watch, and not a read that ends."""
        return "watch" in self.query


class _Line:
    """One connection, with the last request on it."""

    asked: Asked | None = None


class RecordingProxy(Proxy):
    """A proxy from one program to the API server of `plane`. `asked` has every request until now."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(Address("127.0.0.1", plane.port))
        self.asked: list[Asked] = []
        self._plane = plane
        self._trust = ssl.create_default_context(cadata=plane.ca_pem.decode())
        self._held: dict[str, asyncio.Event] = {}

    def kubeconfig(self, file: Path, user: User) -> Path:
        """Write a kubeconfig that names this proxy as the API server."""
        return self._plane.kubeconfig(file, user, server=f"http://{self.address.host}:{self.address.port}")

    def reads(self) -> list[Asked]:
        """Every request until now that was not a watch: the GET of one object, or a list."""
        return [asked for asked in self.asked if not asked.is_watch]

    def hold(self, path: str) -> None:
        """Hold back the events of this collection's watches from now on."""
        self._obey(self._hold(path))

    def release(self, path: str) -> None:
        """Send the events that were held back, and hold back no more."""
        self._obey(self._release(path))

    async def _hold(self, path: str) -> None:
        self._held.setdefault(path, asyncio.Event())

    async def _release(self, path: str) -> None:
        self._held.pop(path).set()

    async def _dial(self) -> Streams:
        host, port = self.targets[0]
        return await asyncio.open_connection(host, port, ssl=self._trust)

    def _ways(self, here: Streams, there: Streams) -> Iterable[Coroutine[Any, Any, None]]:
        line = _Line()
        return self._requests(here[0], there[1], line), self._answers(there[0], here[1], line)

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: _Line) -> None:
        """A program that only reads sends heads without bodies."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                line.asked = _asked(head)
                self.asked.append(line.asked)
                await self._passable.wait()
                writer.write(head)
                await writer.drain()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: _Line) -> None:
        with suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                await self._passable.wait()
                held = self._held.get(line.asked.path) if line.asked and line.asked.is_watch else None
                if held:
                    await held.wait()
                writer.write(data)
                await writer.drain()


def _asked(head: bytes) -> Asked:
    method, target, _ = head.partition(b"\r\n")[0].decode().split(" ")
    parts = urlsplit(target)
    return Asked(method, parts.path, dict(parse_qsl(parts.query)))
