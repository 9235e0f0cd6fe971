"""One HTTP connection of a fake server: the requests, and every way to answer them or to fail."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit


class Asked(NamedTuple):
    """One HTTP request that a fake server received. `target` is its path with the query, as sent."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    raw_path: str
    method: str = "GET"
    body: bytes = b""
    target: str = ""

    @property
    def is_list(self) -> bool:
        """Whether it is a list or watch, and not the GET of one object."""
        return bool({"watch", "limit", "labelSelector"} & self.query.keys())


class Line:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def asked(self) -> Asked | None:
        """Return the next request; None if the client has closed the connection."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        except (asyncio.IncompleteReadError, OSError):
            return None
        method, target, _ = first.split(" ")
        parts = urlsplit(target)
        return Asked(unquote(parts.path), dict(parse_qsl(parts.query)), headers, parts.path, method, body, target)

    async def say(self, data: bytes) -> None:
        """Send these bytes as they are."""
        self._writer.write(data)
        with suppress(OSError):
            await self._writer.drain()

    async def head(self, status: int = 200, **headers: str) -> None:
        """Send the head of a chunked answer; `retry_after` is the header Retry-After."""
        named = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
        named |= {name.replace("_", "-").title(): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status} Told", *(f"{name}: {value}" for name, value in named.items())]
        await self.say("\r\n".join(lines).encode() + b"\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        """Send a chunk of the body, if the chunk is not empty."""
        if data:
            await self.say(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """Send the end of a chunked answer."""
        await self.say(b"0\r\n\r\n")

    async def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Send a whole answer."""
        await self.head(status, **headers)
        await self.chunk(body)
        await self.end()

    async def silence(self) -> None:
        """Send nothing more until the client closes the connection."""
        with suppress(OSError):
            await self._reader.read()

    def reset(self) -> None:
        """Break the connection: the client gets a TCP reset."""
        live: socket.socket = self._writer.get_extra_info("socket")
        with suppress(OSError):  # the client has just closed it
            live.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
