"""What a Reflector logs."""

from __future__ import annotations

import asyncio

import pytest
from support.fakes.api_server import ApiServer, until
from support.fakes.live import reflecting

from webhook.component_base.client.api import Api
from webhook.kube.informer import connection, reflector
from webhook.kube.informer.connection import Cause
from webhook.kube.informer.list_watch import ListWatch


async def test_one_log_line_for_each_change(
    api: Api, server: ApiServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has a line when a cache is synced, when it lost the API server, and when it is synced again."""
    for module in (reflector, connection):
        monkeypatch.setattr(module, "SETTLE_SECONDS", 0.01)
    caplog.set_level("INFO", "webhook")
    async with reflecting(api) as cache:
        await until(lambda: cache.synced)
        await server.stop()
        await until(lambda: cache.causes[Cause.CUT] > 3)
        await server.start()
        await until(lambda: cache.problem == "")
        told = [(record.getMessage(), record.fields) for record in caplog.records]
    cut = f"cut: can't connect to 127.0.0.1:{server.port}: Connection refused"
    name = "sharemanagers.longhorn.io"
    assert told[0] == ("cache synced", {"cache": name, "objects": 2})
    assert told[-2:] == [
        ("cache not up to date", {"cache": name, "problem": cut}),
        ("cache synced", {"cache": name, "objects": 2}),
    ]
    assert len(told) <= 4, "the end of the connection and the refusals after it may be two problems"


class Faulty(ListWatch):
    """A ListWatch with a bug."""

    def opened(self, *_: object) -> None:
        """Raise, as a fault of the program does."""
        raise ZeroDivisionError


async def test_a_fault_of_the_program_is_logged_and_does_not_end_the_cache(
    api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache goes on, and its problem says that it is not up to date."""
    monkeypatch.setattr(reflector, "_AFTER_A_BUG_SECONDS", 0.01)
    async with reflecting(api, machine=Faulty) as cache:
        await until(lambda: cache.causes[Cause.CUT] > 1)
        assert cache.problem == "cut: a fault of the webhook; please report this"
        assert not cache.fresh(asyncio.get_running_loop().time())
    assert {record.getMessage() for record in caplog.records} >= {"a cache failed"}
