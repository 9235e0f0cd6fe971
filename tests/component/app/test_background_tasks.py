"""A background task ends inside a running `serve`: calls are answered, the process drains, and exits with 1."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.drivers.command_lines import values
from support.drivers.http_calls import request
from support.drivers.scraping import asking, scraped
from support.drivers.serving import Pair, issue
from support.fakes.api_server import ApiServer, until
from support.fakes.live import cluster_of, write_kubeconfig
from support.fakes.wire import Wire
from support.objects import builders
from support.waits import MAX_WAIT_SECONDS

from webhook import cli
from webhook.app import run
from webhook.app.settings import ServeSettings

pytestmark = pytest.mark.slow

_PORTS: Final = ("listen", "health_listen")
BODY: Final = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
VERBOSE: Final = b"GET /readyz?verbose HTTP/1.1\r\nHost: a\r\n\r\n"


class Running(NamedTuple):
    """A `serve` in this event loop."""

    ended: asyncio.Task[int]
    port: int
    health_port: int
    pair: Pair

    async def health(self, call: bytes) -> str:
        """Return the answer of the health port."""
        async with await Wire.open(self.health_port) as wire:
            return (await wire.ask(call)).body.decode()


@asynccontextmanager
async def running(directory: Path, caplog: pytest.LogCaptureFixture, drain_seconds: float) -> AsyncIterator[Running]:
    """Serve a cluster without objects."""
    async with ApiServer(cluster_of()) as server:
        pair = issue(directory)
        given = {
            "tls-cert-file": str(pair.cert_file),
            "tls-private-key-file": str(pair.key_file),
            "kubeconfig": str(write_kubeconfig(directory / "kubeconfig", server.url)),
            "listen": "127.0.0.1:0",
            "health-listen": "127.0.0.1:0",
            "drain-seconds": str(drain_seconds),
            "events": "on",
        }
        chosen = ServeSettings(**values(cli.COMMANDS, "serve", *(f"--{name}={value}" for name, value in given.items())))
        caplog.set_level("INFO", logger="webhook")
        ended = asyncio.create_task(run.run_until_stopped(chosen))
        try:
            await until(lambda: ended.done() or bool(_told(caplog, "serving")))
            ports = [int(each[name].rpartition(":")[2]) for each in _told(caplog, "serving") for name in _PORTS]
            yield Running(ended, *(ports or (0, 0)), pair)
        finally:
            ended.cancel()
            await asyncio.wait([ended])


def _told(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, str]]:
    return [vars(record)["fields"] for record in caplog.records if record.getMessage() == message]


def _cancelled(name: str) -> Callable[[], None]:
    """Make the task of this name end as if a library raised CancelledError in it."""

    def cancel() -> None:
        [task] = [each for each in asyncio.all_tasks() if each.get_name() == name]
        task.cancel()

    return cancel


@pytest.mark.parametrize("name", ["cache nodes", "vms", "events", "certificate"])
async def test_a_task_that_is_cancelled_ends_the_process_well(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It logs and counts that, is not ready any more, answers the last callers, and exits with 1."""
    async with running(tmp_path, caplog, drain_seconds=MAX_WAIT_SECONDS) as serve:
        _cancelled(name)()
        await until(lambda: bool(_told(caplog, "draining")))
        assert _told(caplog, "a background task ended, so the process ends") == [
            {"task": name, "because": "it was cancelled"}
        ]
        ready = await serve.health(VERBOSE)
        assert "[-]shutdown failed" in ready
        if name == "cache nodes":
            assert "cut: no task updates it any more" in ready
        async with await Wire.open(serve.health_port) as wire:
            assert (
                scraped(await wire.ask(asking())).value("kubevirt_coschedule_background_task_failures_total", task=name)
                == 1
            )
        async with await Wire.open(serve.port, serve.pair.trust) as wire:
            assert (await wire.ask(request(BODY))).response["allowed"] is True
        assert not serve.ended.done()
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + MAX_WAIT_SECONDS)  # the drain is over
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            assert await serve.ended == 1


async def test_a_signal_ends_it_with_0(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tasks that are canceled at the stop are not failures."""
    async with running(tmp_path, caplog, drain_seconds=0) as serve:
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            assert await serve.ended == 0
    assert not _told(caplog, "a background task ended, so the process ends")
