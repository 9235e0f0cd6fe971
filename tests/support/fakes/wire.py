"""A Listener in the test's own event loop, and an asyncio client that sends exactly the given bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self

from aiohttp import web
from support.drivers.http_calls import PATH, Reply, parse_reply
from support.drivers.serving import issue
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.options import Address
from webhook.component_base.server.connection import DEFAULT_LIMITS, Limits
from webhook.component_base.server.listener import Listener
from webhook.serving.certificate import ServingCertificate
from webhook.serving.routes import webhook_application
from webhook.serving.tls import TLSFiles

_GRACE_SECONDS: Final = 0.05


class Wire:
    """One connection to a port of loopback."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._got = bytearray()

    @classmethod
    async def open(cls, port: int, trust: ssl.SSLContext | None = None) -> Self:
        """Connect; with TLS if `trust` is given."""
        server_hostname = "localhost" if trust else None
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=server_hostname))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hang_up()

    async def secure(self, trust: ssl.SSLContext) -> None:
        """Start TLS on a connection that was opened without TLS."""
        await self._writer.start_tls(trust, server_hostname="localhost")

    def hang_up(self) -> None:
        """Break the connection at once."""
        self._writer.transport.abort()

    async def send(self, data: bytes) -> None:
        """Send these bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def reply(self) -> Reply:
        """Wait for the next answer, and return it.

        Raises:
            EOFError: the server closed the connection before the answer was complete.
        """
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            while (parsed := parse_reply(self._got)) is None:
                more = await self._read()
                if not more:
                    raise EOFError(bytes(self._got))
                self._got += more
        reply, length = parsed
        del self._got[:length]
        return reply

    async def ask(self, data: bytes) -> Reply:
        """Send these bytes, and wait for the answer."""
        await self.send(data)
        return await self.reply()

    async def rest(self) -> bytes:
        """Return all other bytes until the server closes the connection; fails if the server keeps it open."""
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            while more := await self._read():
                self._got += more
        return bytes(self._got)

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(65536)
        except ConnectionError:
            return b""


class Listening:
    """A running Listener with TLS."""

    def __init__(self, listener: Listener, port: int, trust: ssl.SSLContext) -> None:
        self.listener, self.port, self.trust = listener, port, trust

    async def connect(self) -> Wire:
        """Open a new connection to the listener."""
        return await Wire.open(self.port, self.trust)

    async def ask(self, data: bytes) -> Reply:
        """Send these bytes on a new connection, and return the answer."""
        async with await self.connect() as wire:
            return await wire.ask(data)


@asynccontextmanager
async def plain_wire(app: web.Application) -> AsyncIterator[Wire]:
    """A connection without TLS to a Listener of `app`."""
    listener = Listener(app)
    address = await listener.start(Address("127.0.0.1", 0))
    try:
        async with await Wire.open(address.port) as wire:
            yield wire
    finally:
        await listener.stop(0)


@asynccontextmanager
async def echoing(
    certificate: ServingCertificate, trust: ssl.SSLContext, *, client_name: str | None = None
) -> AsyncIterator[Listening]:
    """A Listener with this certificate, for clients with this trust. It answers each call with its body."""

    async def admit(body: bytes, _: float) -> bytes:
        return body

    app = webhook_application({PATH: admit}, client_name=client_name)
    listener = Listener(app, tls=lambda: certificate.context, refused=certificate.handshakes.note)
    address = await listener.start(Address("127.0.0.1", 0))
    try:
        yield Listening(listener, address.port, trust)
    finally:
        await listener.stop(0)


@asynccontextmanager
async def listening(app: web.Application, directory: Path, limits: Limits = DEFAULT_LIMITS) -> AsyncIterator[Listening]:
    """A TLS Listener of `app`, with a certificate of its own in `directory`."""
    pair = issue(directory)
    certificate = ServingCertificate(TLSFiles(cert_file=pair.cert_file, key_file=pair.key_file))
    listener = Listener(app, tls=lambda: certificate.context, limits=limits)
    address = await listener.start(Address("127.0.0.1", 0))
    try:
        yield Listening(listener, address.port, pair.trust)
    finally:
        await listener.stop(_GRACE_SECONDS)
