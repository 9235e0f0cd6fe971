"""The log of `serve`: one line a record, in both formats, at each level, limited, with uid, without secrets."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace
from support.drivers.logging_here import Logged
from support.objects.records import RECORD

from webhook.telemetry.record import LOGGER

CONTENT: Final = "what-only-the-owner-of-a-pod-may-read"
FORMS: Final = ("json", "text")
LEVELS: Final = ("debug", "info", "warning", "error")
FORGED: Final = 'u\n{"message":"forged"}\u2028\x1b[31m\r'

each_form = pytest.mark.parametrize("form", FORMS)


# Form.


def test_an_admission_is_one_line_of_json(logged: Logged) -> None:
    """Time, level, a constant message, then the fields of the record. Fields with default values are left out."""
    logged.start().write(RECORD)
    [line] = logged.lines()
    assert list(line)[:3] == ["time", "level", "message"]
    assert datetime.fromisoformat(line["time"]) == RECORD.time
    assert (line["level"], line["message"], line["uid"]) == ("info", "admission", "u-1")
    assert line["nodes"] == ["node-a", "node-b"]
    assert "dry_run" not in line


def test_an_admission_is_one_line_of_text(logged: Logged) -> None:
    """The same content for people: values without spaces have no quotes."""
    logged.start("text").write(RECORD)
    [line] = logged.text()
    assert line == (
        "2026-01-01T12:00:00.250000Z INFO    admission entry=virt-launcher uid=u-1 decision=required "
        'reason=ShareManagerPod because="claim disk: pod share-manager-pvc-disk is on node node-a" duration_us=85 '
        "namespace=vms vmi=db01 nodes=node-a,node-b"
    )


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"listen": "https://127.0.0.1:9443"}, " listen=https://127.0.0.1:9443"),
        ({"until": datetime(2027, 1, 1, tzinfo=UTC)}, " until=2027-01-01T00:00:00Z"),
        ({"left_out": 3, "by": {"required ShareManagerPod": 3}}, ' left_out=3 by={"required ShareManagerPod": 3}'),
        ({"uid": None, "ok": True}, " uid=null ok=true"),
        ({"nodes": ["a b", "c"]}, ' nodes=["a b", "c"]'),
        ({"nodes": []}, " nodes="),
        ({"name": ""}, ' name=""'),
        ({}, ""),
    ],
    ids=["plain", "a time", "a table", "nothing and yes", "a list with a blank", "an empty list", "no text", "none"],
)
def test_fields_of_a_line_of_text(logged: Logged, fields: dict[str, Any], told: str) -> None:
    """Any values make one line."""
    logged.start("text")
    LOGGER.warning("it happened", extra={"fields": fields})
    [line] = logged.text()
    assert re.fullmatch(r"\S+Z WARNING it happened", line.removesuffix(told))


@each_form
def test_a_line_break_in_a_name_breaks_no_line(logged: Logged, form: str) -> None:
    """The text of a caller can't forge a log line, and in text format can't control a terminal."""
    log = logged.start(form)
    log.write(replace(RECORD, uid=FORGED))
    LOGGER.warning("bad review", extra={"fields": {"uid": FORGED}})
    LOGGER.warning("said: %s", FORGED)
    if form == "json":
        admission, review, said = logged.lines()
        assert (admission["uid"], review["uid"], said["message"]) == (FORGED, FORGED, f"said: {FORGED}")
    else:
        told = logged.text()
        assert len(told) == 3
        assert all(line.isascii() and line.isprintable() for line in told)


@each_form
def test_an_error_is_one_line_with_its_places(logged: Logged, form: str) -> None:
    """The exception, with file and line of each frame, without the text of a traceback."""
    logged.start(form)
    try:
        json.loads("{")
    except ValueError:
        LOGGER.exception("failed")
    [line] = logged.text()
    assert "JSONDecodeError: Expecting property name" in line
    assert "test_log.py:" in line
    assert "Traceback" not in line


# Levels.


@each_form
@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_the_least_that_is_logged(logged: Logged, form: str, level: str) -> None:
    """The levels of the webhook's own lines; an admission is at level info."""
    log = logged.start(form, level)
    for each in LEVELS:
        LOGGER.log(logging.getLevelNamesMapping()[each.upper()], "told at %s", each)
    log.write(RECORD)
    found = re.findall(r"told at (\w+)", "\n".join(lines := logged.text()))
    assert found == list(LEVELS[LEVELS.index(level) :])
    assert any("ShareManagerPod" in line for line in lines) == (level in ("debug", "info"))


@pytest.mark.parametrize(("level", "told"), [("debug", ["warning"]), ("info", ["warning"]), ("error", [])])
def test_libraries_tell_warnings_and_no_less(logged: Logged, level: str, told: list[str]) -> None:
    """In the same format. Their lower levels, which can log bodies and headers, are off at every level."""
    logged.start("json", level)
    for name in ("asyncio", "kubernetes_asyncio.client.rest", "aiohttp.client"):
        for number in (logging.DEBUG, logging.INFO):
            logging.getLogger(name).log(number, "response body: %s", CONTENT)
    logging.getLogger("asyncio").warning("slow %s", "callback")
    lines = [json.loads(line) for line in logged.text()]
    assert [(line["level"], line["message"]) for line in lines] == [(each, "slow callback") for each in told]


# Storms.


@each_form
def test_a_storm_of_admissions_is_counted(logged: Logged, form: str) -> None:
    """The first lines are written. One more line has the number of the others, by decision and reason."""
    log = logged.start(form, "info", 2)
    for decision, reason in [("required", "ShareManagerPod")] * 5 + [("unchanged", "NoClaims")] * 2:
        log.write(replace(RECORD, decision=decision, reason=reason))
    assert len(logged.text()) == 2
    assert log.left_out == 5
    logged.over()
    [line] = logged.text()
    assert "admissions left out" in line
    assert re.search(r'"required ShareManagerPod": ?3,', line)
    assert re.search(r'"unchanged NoClaims": ?2}', line)


def test_a_storm_of_bad_calls_is_counted_by_itself(logged: Logged) -> None:
    """Bad reviews can't fill the log, nor keep the line of an admission out of it. Other lines are all written."""
    log = logged.start("json", "info", 2)
    for number in range(5):
        LOGGER.warning("bad review", extra={"fields": {"uid": None, "because": str(number)}})
    for _ in range(5):
        LOGGER.warning("certificate not loaded", extra={"fields": {"because": "expired"}})
    log.write(RECORD)
    told = [line["message"] for line in logged.lines()]
    assert told == ["bad review"] * 2 + ["certificate not loaded"] * 5 + ["admission"]
    log.flush()
    [line] = logged.lines()
    assert (line["message"], line["left_out"], line["by"]) == ("lines left out", 3, {"bad review": 3})
