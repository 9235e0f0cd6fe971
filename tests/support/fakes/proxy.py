"""A TCP proxy on loopback with the faults of a network; with several targets it stands in for kube-proxy.

It does not interpret the bytes, so TLS is end to end. A change of its settings is effective when the call returns.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple, Self

from support.control_plane.programs import free_port
from support.waits import MAX_WAIT_SECONDS

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PIECE_BYTES: Final = 65536
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER on, of no seconds


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int


class Proxy:
    """A context manager that connects each caller to one of `targets`, in turn or as `choose` chooses.

    A connection keeps its target. A change of the targets is for new connections only, as when kube-proxy learns of new
    endpoints.
    """

    def __init__(
        self,
        *targets: Address,
        host: str = "127.0.0.1",
        port: int = 0,
        choose: Callable[[Sequence[Address]], Address] | None = None,
    ) -> None:
        self.targets = targets
        self._choose = choose
        self.address = Address(host, port or free_port(host))
        self.accepted = 0
        self._turn = count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[Any]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._passable = asyncio.Event()
        self._passable.set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._obey(self._accept())
        return self

    def __exit__(self, *_: object) -> None:
        self._obey(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Reset every connection."""
        self._obey(self._cut())

    def freeze(self) -> None:
        """Pass no bytes any more. Connections stay open, and new connections are accepted."""
        self._obey(self._freeze())

    def thaw(self) -> None:
        """Pass bytes again, with those that came in between."""
        self._obey(self._thaw())

    def _obey(self, told: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(told, self._loop).result(MAX_WAIT_SECONDS)

    async def _cut(self) -> None:
        for writer in (each for each in self._writers if not each.transport.is_closing()):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _accept(self) -> None:
        self._server = await asyncio.start_server(self._connected, *self.address)
        self.address = Address(*self._server.sockets[0].getsockname())

    async def _freeze(self) -> None:
        self._passable.clear()

    async def _thaw(self) -> None:
        self._passable.set()

    async def _end(self) -> None:
        if self._server:
            self._server.close()
        await self._cut()
        await asyncio.sleep(0)  # for what an aborted transport has left to do

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end. If the target can't be reached, the connection breaks off."""
        task = asyncio.current_task()
        assert task is not None
        self.accepted += 1
        self._connections.add(task)
        self._writers.add(writer)
        opened = [writer]
        try:
            await self._passable.wait()
            there, onward = await self._dial()
            opened.append(onward)
            self._writers.add(onward)
            pumps = [asyncio.ensure_future(way) for way in self._ways((reader, writer), (there, onward))]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # refused or cut: the connection ends without a message
        finally:
            for each in opened:
                each.close()
                self._writers.discard(each)
            self._connections.discard(task)

    async def _dial(self) -> Streams:
        """Open a connection to the target whose turn it is."""
        chosen = self._choose(self.targets) if self._choose else self.targets[next(self._turn) % len(self.targets)]
        host, port = chosen
        return await asyncio.open_connection(host, port)

    def _ways(self, here: Streams, there: Streams) -> Iterable[Coroutine[Any, Any, None]]:
        """Return the tasks that carry the bytes of one connection, one for each direction, until it ends."""
        return self._pump(here[0], there[1]), self._pump(there[0], here[1])

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_PIECE_BYTES):
                await self._passable.wait()
                writer.write(data)
                await writer.drain()
            await self._passable.wait()
