"""An API server on a loopback socket. A test decides which bytes the server sends, and when.

HTTP/1.1 by hand, with chunks, so that an answer can break off anywhere. `Cluster` answers from models of collections
(model_api.py) as a real one would, and counts; a `fault` stands before it for as long as it says.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

import trustme
from support.fakes.http_line import Asked, Line
from support.models.model_api import Answer, Collection, Object, Watch, page, refusal
from support.waits import MAX_WAIT_SECONDS

_POLL_SECONDS: Final = 0.002
_NAMESPACED: Final = "/namespaces/"
_ON_NODE: Final = "spec.nodeName="


Handler = Callable[[Asked, Line], Awaitable[None]]


class ApiServer:
    """A listener that hands each request to `handler`. Use it as an asynchronous context manager.

    Attributes:
        asked: every request so far.
        failed: what went wrong in a handler; a test's end fails on it.
    """

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.port = 0
        self.asked: list[Asked] = []
        self.failed: list[BaseException] = []
        self.tls: ssl.SSLContext | None = None
        self._lines: dict[asyncio.Task[None], Line] = {}
        self._server: asyncio.Server | None = None
        self._kept = socket.socket()  # bound while the server is stopped, so that no other process takes the port
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def reads(self) -> list[Asked]:
        """Every request so far that begins no watch."""
        return [asked for asked in self.asked if "watch" not in asked.query]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        self._kept.close()
        assert not self.failed, self.failed

    async def start(self) -> None:
        """Listen on the same port as before."""
        if self._kept.getsockname()[1] == 0:
            self._kept.bind(("127.0.0.1", self.port))
            self.port = self._kept.getsockname()[1]
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)

    async def stop(self) -> None:
        """Stop listening, and break the open connections. A client then gets *connection refused*."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        self.reset()
        await asyncio.gather(*self._lines, return_exceptions=True)
        await server.wait_closed()

    def reset(self) -> None:
        """Break every connection that is open."""
        for line in self._lines.values():
            line.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        line = self._lines[task] = Line(reader, writer)
        if self._server is None:  # the connection was accepted while the server stopped
            line.reset()
        try:
            while asked := await line.asked():
                self.asked.append(asked)
                await self.handler(asked, line)
        except Exception as error:  # noqa: BLE001 - shown at the end of the test
            self.failed.append(error)
        finally:
            del self._lines[task]
            writer.transport.abort()


class Cluster:
    """A handler that answers from collections: path of the collection -> its model; a path without one is 404.

    `token`: the only bearer token that is taken; others get 401. Without one, nobody is asked for a token.
    """

    def __init__(self, collections: Mapping[str, Collection]) -> None:
        self.collections = dict(collections)
        self.token = ""
        self._faults: list[tuple[Callable[[Asked], bool], Handler]] = []

    @contextmanager
    def fault(self, handler: Handler, *, when: Callable[[Asked], bool] = lambda _: True) -> Iterator[None]:
        """Let `handler` answer the requests for which `when` returns True, until the block ends."""
        entry = (when, handler)
        self._faults.append(entry)
        try:
            yield
        finally:
            self._faults.remove(entry)

    async def __call__(self, asked: Asked, line: Line) -> None:
        """Answer a request: with a fault if one applies, otherwise with the collections."""
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            await line.answer(*refusal(401, "Unauthorized"))
            return
        for when, handler in reversed(self._faults):
            if when(asked):
                await handler(asked, line)
                return
        await self.reply(asked, line)

    async def reply(self, asked: Asked, line: Line) -> None:
        """Answer from the collections, as without a fault."""
        if asked.query.get("fieldSelector", "").startswith(_ON_NODE):
            await line.answer(*self._on_node(asked))
            return
        collection = self.collections.get(asked.path)
        if collection is None:
            await line.answer(*self._item(asked.path))
            return
        answer = collection.answer(asked.query)
        if isinstance(answer, Answer):
            await line.answer(*answer)
        else:
            await self._watch(collection, answer, line)

    def _item(self, path: str) -> Answer:
        parent, _, name = path.rpartition("/")
        before, found, namespaced = parent.partition(_NAMESPACED)
        namespace, _, plural = namespaced.partition("/")
        collection = self.collections.get(parent) or (found and self.collections.get(f"{before}/{plural}")) or None
        if collection is None:
            return Answer(404, b"404 page not found\n")
        item: Object | None = collection.objects.get((namespace, name)) or collection.objects.get(("", name))
        return Answer(200, json.dumps(item).encode()) if item else refusal(404, "NotFound", f"{name} not found")

    def _on_node(self, asked: Asked) -> Answer:
        """List the objects on one node in one namespace. All objects of a collection have the label of the request."""
        before, _, namespaced = asked.path.partition(_NAMESPACED)
        namespace, _, plural = namespaced.partition("/")
        node = asked.query["fieldSelector"].removeprefix(_ON_NODE)
        collection = self.collections[f"{before}/{plural}"]
        items = [
            each
            for (within, _), each in sorted(collection.objects.items())
            if (within, each["spec"].get("nodeName")) == (namespace, node)
        ]
        return Answer(200, page(items, collection.revision))

    async def _watch(self, collection: Collection, watch: Watch, line: Line) -> None:
        more = asyncio.Event()
        watch.woken = more.set
        await line.head()
        gone = asyncio.ensure_future(line.silence())
        try:
            while not gone.done():
                more.clear()
                await line.chunk(watch.said())
                waiting = asyncio.ensure_future(more.wait())
                await asyncio.wait([waiting, gone], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            gone.cancel()
            collection.watches.remove(watch)


def saying(status: int, body: bytes = b"", **headers: str) -> Handler:
    """Return a handler that gives this answer."""

    async def handler(_: Asked, line: Line) -> None:
        await line.answer(status, body, **headers)

    return handler


def refusing(code: int, *words: str, **more: Any) -> Handler:
    """Return a handler that refuses each request with a Status."""
    return saying(code, refusal(code, *words, **more).body)


def tls_of(authority: trustme.CA) -> ssl.SSLContext:
    """Return the SSL context of a server with a certificate of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def until(holds: Callable[[], object]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(_POLL_SECONDS)
