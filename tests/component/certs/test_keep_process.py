"""`keep` as a process: if its loop ends by itself, the process ends, and logs why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_lines import values

from certs import cli, run
from certs.controller import Controller
from certs.settings import ControllerSettings

pytestmark = pytest.mark.slow


async def _returns(_: Controller) -> None:
    pass


async def _fails(_: Controller) -> None:
    raise ZeroDivisionError("a bug")


async def _is_cancelled(_: Controller) -> None:
    raise asyncio.CancelledError


ENDS: Final = {"it returned": _returns, "it failed": _fails, "it was cancelled": _is_cancelled}


@pytest.mark.parametrize(("because", "end"), ENDS.items(), ids=ENDS)
async def test_a_controller_that_ends_by_itself_ends_the_process(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    because: str,
    end: Callable[[Controller], Awaitable[None]],
) -> None:
    """With exit code 1: the kubelet starts it again. The error's message is not logged: it could quote a Secret."""
    config = tmp_path / "config"
    config.write_text(
        '{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],'
        '"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"x","user":{}}]}'
    )
    monkeypatch.setattr(Controller, "run", end)
    kept = ControllerSettings(**values(cli.COMMANDS, "keep", f"--kubeconfig={config}", "--listen=127.0.0.1:0"))
    assert await run._run(kept) == 1
    [told] = [record for record in caplog.records if record.levelname == "ERROR"]
    fields = vars(told)["fields"]
    assert (told.getMessage(), fields["because"]) == ("a background task ended, so the process ends", because)
    error = "ZeroDivisionError" if end is _fails else None
    assert (fields.get("error"), bool(fields.get("at"))) == (error, end is _fails)
