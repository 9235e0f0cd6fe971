"""The log of `serve`: one line of JSON a record, at each level, with uid, without secrets."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged
from support.drivers.serving import ROOT
from support.objects.records import RECORD

from webhook import cli
from webhook.component_base.log_line import TEXT_MAX_CHARS
from webhook.telemetry import record as log
from webhook.telemetry.record import LOGGER

CONTENT: Final = "what-only-the-owner-of-a-pod-may-read"
LEVELS: Final[tuple[log.LogLevel, ...]] = ("debug", "info", "warning", "error")
FORGED: Final = 'u\n{"message":"forged"}\u2028\x1b[31m\r'


# Form.


def test_an_admission_is_one_line_of_json(logged: Logged) -> None:
    """Time, level, a constant message, then the fields of the record. Fields with default values are left out."""
    logged.start("info")
    log.write(RECORD)
    [line] = logged.lines()
    assert list(line)[:3] == ["time", "level", "message"]
    assert datetime.fromisoformat(line["time"]) == RECORD.time
    assert (line["level"], line["message"], line["uid"]) == ("info", "admission", "u-1")
    assert line["nodes"] == ["node-a", "node-b"]
    assert "dry_run" not in line


def test_a_line_that_can_not_be_written_is_lost(logged: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full. Each call still gets its answer, which comes after its line."""
    logged.start("info")
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr("sys.stderr", SimpleNamespace(buffer=full))
        log.write(RECORD)


def test_a_line_break_in_a_name_breaks_no_line(logged: Logged) -> None:
    """The text of a caller can't forge a log line."""
    logged.start("info")
    log.write(replace(RECORD, uid=FORGED))
    LOGGER.warning("bad review", extra={"fields": {"uid": FORGED}})
    LOGGER.warning("said: %s", FORGED)
    admission, review, said = logged.lines()
    assert (admission["uid"], review["uid"], said["message"]) == (FORGED, FORGED, f"said: {FORGED}")


def test_no_text_in_a_line_is_longer_than_its_bound(logged: Logged) -> None:
    """A message, a field and an error end with three dots there. Numbers and lists stay."""
    logged.start("info")
    fields = {"because": CONTENT * 1_000, "so_far": 1}
    LOGGER.error(CONTENT * 1_000, exc_info=ValueError(CONTENT * 1_000), extra={"fields": fields})
    [line] = logged.lines()
    for text in (line["message"], line["error"], line["because"]):
        assert text.endswith("...")
        assert len(text) == TEXT_MAX_CHARS
    assert line["so_far"] == 1


def test_an_error_is_one_line_with_its_places(logged: Logged) -> None:
    """The exception, with file and line of each frame, without the text of a traceback."""
    logged.start("info")
    try:
        json.loads("{")
    except ValueError:
        LOGGER.exception("failed")
    [line] = logged.text()
    assert "JSONDecodeError: Expecting property name" in line
    assert "test_log.py:" in line
    assert "Traceback" not in line


def test_a_process_that_logged_leaves_no_handler(capsys: pytest.CaptureFixture[str]) -> None:
    """A handler that stays writes to a stream that is closed by then."""
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    levels = root.level, LOGGER.level
    words = [
        "serve",
        "--tls-cert-file=/none/a",
        "--tls-private-key-file=/none/b",
        f"--manifests={ROOT}/manifests/examples/cluster",
    ]
    assert cli.main([*words, "--log-level=debug"]) == 2
    assert "/none/a" in capsys.readouterr().err
    assert (root.handlers, root.level, LOGGER.level) == (before, *levels)


# Levels.


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_the_least_that_is_logged(logged: Logged, level: log.LogLevel) -> None:
    """The levels of the webhook's own lines; an admission is at level info."""
    logged.start(level)
    for each in LEVELS:
        LOGGER.log(logging.getLevelNamesMapping()[each.upper()], "told at %s", each)
    log.write(RECORD)
    found = re.findall(r"told at (\w+)", "\n".join(lines := logged.text()))
    assert found == list(LEVELS[LEVELS.index(level) :])
    assert any("ShareManagerPod" in line for line in lines) == (level in ("debug", "info"))


@pytest.mark.parametrize(("level", "told"), [("debug", ["warning"]), ("info", ["warning"]), ("error", [])])
def test_libraries_tell_warnings_and_no_less(logged: Logged, level: log.LogLevel, told: list[str]) -> None:
    """In the same form. Their lower levels, which can log bodies and headers, are off at every level."""
    logged.start(level)
    for name in ("asyncio", "kubernetes_asyncio.client.rest", "aiohttp.client"):
        for number in (logging.DEBUG, logging.INFO):
            logging.getLogger(name).log(number, "response body: %s", CONTENT)
    logging.getLogger("asyncio").warning("slow %s", "callback")
    lines = [json.loads(line) for line in logged.text()]
    assert [(line["level"], line["message"]) for line in lines] == [(each, "slow callback") for each in told]
