"""The faults of list and watch over real connections: after each fault the cache is correct again by itself."""

from __future__ import annotations

import pytest
from support.fakes.api_server import ApiServer, Cluster, Handler, refusing, saying, until
from support.fakes.http_line import Asked, Line
from support.fakes.live import SHARE_MANAGERS, Impatient, owners, reflecting, share_manager_on
from support.fakes.watching import manager
from support.models.model_api import event, status

from webhook.component_base.client.api import Api
from webhook.kube.informer.connection import Cause
from webhook.kube.informer.list_watch import ListWatch


def half(what: bytes) -> bytes:
    """The first half."""
    return what[: len(what) // 2]


async def reset(_: Asked, line: Line) -> None:
    """Break the connection before the first byte."""
    line.reset()


async def reset_in_chunk(_: Asked, line: Line) -> None:
    """Break it in the middle of a chunk, in the middle of a line."""
    await line.head()
    await line.say(b"fff\r\n" + half(event("ADDED", manager("x", 9, "n9"))))
    line.reset()


async def end_in_line(_: Asked, line: Line) -> None:
    """End the answer, as HTTP has it, in the middle of a line."""
    await line.answer(200, half(event("ADDED", manager("x", 9, "n9"))))


async def bad_chunk(_: Asked, line: Line) -> None:
    """Send a chunk whose length is not a number."""
    await line.head()
    await line.say(b"zzz\r\n{}\r\n")


async def not_http(_: Asked, line: Line) -> None:
    """Another protocol."""
    await line.say(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


async def huge_header(_: Asked, line: Line) -> None:
    """A head that is too long to be one."""
    await line.head(200, x="y" * 100_000)


async def silent(_: Asked, line: Line) -> None:
    """Never answer."""
    await line.silence()


async def silent_after_head(_: Asked, line: Line) -> None:
    """A watch that is open, and dead."""
    await line.head()
    await line.silence()


async def slow_head(_: Asked, line: Line) -> None:
    """A head that stops in its middle."""
    await line.say(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await line.silence()


HTML = saying(200, b"<html>\n<body>Please log in</body>\n</html>\n", content_type="text/html")
FAULTS: dict[str, tuple[Handler, Cause]] = {
    "reset before a word": (reset, Cause.CUT),
    "reset in the middle of a chunk": (reset_in_chunk, Cause.CUT),
    "a chunk that is none": (bad_chunk, Cause.CUT),
    "another protocol": (not_http, Cause.CUT),
    "a head that is too long": (huge_header, Cause.CUT),
    "nothing at all": (silent, Cause.SILENT),
    "a dead stream": (silent_after_head, Cause.SILENT),
    "half a head": (slow_head, Cause.SILENT),
    "HTML with status 200": (HTML, Cause.GARBAGE),
    "410": (refusing(410, "Expired"), Cause.EXPIRED),
}
OF_A_STREAM: dict[str, tuple[Handler, Cause]] = {
    **FAULTS,
    "ended in the middle of a line": (end_in_line, Cause.CUT),
    "410 as ERROR event": (saying(200, event("ERROR", status(410, "Expired"))), Cause.EXPIRED),
}
OF_A_PAGE: dict[str, tuple[Handler, Cause]] = {
    **FAULTS,
    "ended in the middle": (end_in_line, Cause.GARBAGE),
    "nothing in it": (saying(200), Cause.GARBAGE),
}


def machine_for(cause: Cause) -> type[ListWatch]:
    """A machine that notices silence early if the row is about silence."""
    return Impatient if cause is Cause.SILENT else ListWatch


@pytest.mark.parametrize(("fault", "cause"), OF_A_STREAM.values(), ids=OF_A_STREAM)
async def test_a_watch_survives(fault: Handler, cause: Cause, api: Api, server: ApiServer, cluster: Cluster) -> None:
    """The cache shows what it has during the fault, and afterwards also what happened meanwhile."""
    managers = cluster.collections[SHARE_MANAGERS]
    async with reflecting(api, machine=machine_for(cause)) as cache:
        await until(lambda: owners(cache) == {"a": "n1", "b": "n2"})
        before = cache.causes[cause]
        with cluster.fault(fault, when=lambda asked: "resourceVersion" in asked.query):
            server.reset()
            await until(lambda: cache.causes[cause] > before)
            assert owners(cache) == {"a": "n1", "b": "n2"}
            managers.remove("b", "longhorn-system")
        managers.put(share_manager_on("c", "n3"))
        await until(lambda: owners(cache) == {"a": "n1", "c": "n3"})


FIRST: dict[str, tuple[Handler, Cause, str]] = {
    **{f"by watch: {name}": (*row, "served") for name, row in OF_A_STREAM.items()},
    **{f"by pages: {name}": (*row, "refused") for name, row in OF_A_PAGE.items()},
}


@pytest.mark.parametrize(("fault", "cause", "streaming"), FIRST.values(), ids=FIRST)
async def test_a_first_list_survives(fault: Handler, cause: Cause, streaming: str, api: Api, cluster: Cluster) -> None:
    """The cache shows nothing before a list was whole. Of a list by pages the fault comes with the second one."""
    managers = cluster.collections[SHARE_MANAGERS]
    managers.streaming, managers.page_objects = streaming, 1
    async with reflecting(api, machine=machine_for(cause)) as cache:
        with cluster.fault(fault, when=lambda asked: streaming == "served" or "continue" in asked.query):
            await until(lambda: cache.causes[cause] > 1)
            assert (cache.objects, cache.synced) == ({}, False)
            assert cache.problem
        await until(lambda: cache.synced)
        assert owners(cache) == {"a": "n1", "b": "n2"}


async def test_a_server_that_is_down_is_asked_again(api: Api, server: ApiServer, cluster: Cluster) -> None:
    """While the connection is refused, the cache keeps its objects. Then the watch goes on from its resourceVersion."""
    async with reflecting(api) as cache:
        await until(lambda: cache.synced)
        await server.stop()
        await until(lambda: cache.causes[Cause.CUT] > 2)
        assert cache.problem == f"cut: can't connect to 127.0.0.1:{server.port}: Connection refused"
        assert owners(cache) == {"a": "n1", "b": "n2"}
        cluster.collections[SHARE_MANAGERS].put(share_manager_on("c", "n3"))
        asked = len(server.asked)
        await server.start()
        await until(lambda: "c" in cache.objects)
        assert "resourceVersion" in server.asked[asked].query
