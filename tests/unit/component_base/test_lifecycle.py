"""Background tasks: if a task ends in any way, that is logged and counted, and the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.lifecycle import Background


async def _returns() -> None:
    await asyncio.sleep(0)


async def _fails() -> None:
    await asyncio.sleep(0)
    raise ValueError("no such thing")


async def _is_cancelled() -> None:
    raise asyncio.CancelledError


async def _lasts() -> None:
    await asyncio.Event().wait()


ENDS: Final = {"returned": (_returns, None), "failed": (_fails, "ValueError"), "was cancelled": (_is_cancelled, None)}


@pytest.mark.parametrize(("because", "work", "error"), [(why, *row) for why, row in ENDS.items()], ids=ENDS)
async def test_the_end_of_a_task_ends_the_process(
    caplog: pytest.LogCaptureFixture, because: str, work: Callable[[], Awaitable[None]], error: str | None
) -> None:
    """The log has an error line with its name, the count rises, and the exit code is 1. The other tasks continue."""
    background = Background()
    background.start("lasts", _lasts())
    background.start("ends", work())  # type: ignore[arg-type] # they are coroutines
    assert (background.exit_code, dict(background.failures)) == (0, {"lasts": 0, "ends": 0})
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        await background.failed.wait()
    assert (background.exit_code, dict(background.failures)) == (1, {"lasts": 0, "ends": 1})
    await background.stop()
    [told] = caplog.records
    assert (told.levelname, told.getMessage()) == ("ERROR", "a background task ended, so the process ends")
    fields = vars(told)["fields"]
    assert (fields["task"], fields["because"], fields.get("error")) == ("ends", f"it {because}", error)
    assert bool(fields.get("at")) is bool(error)


async def test_our_own_end_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Tasks that raise while they are canceled at the end are not failures."""

    async def objects() -> None:
        try:
            await _lasts()
        finally:
            raise ValueError("not now")

    background = Background()
    background.start("lasts", _lasts())
    background.start("objects", objects())
    await asyncio.sleep(0)
    await background.stop()
    assert (background.exit_code, background.failed.is_set(), caplog.records) == (0, False, [])
