"""The options of reunite: the limits that they make, and one clear sentence for a bad value."""

from __future__ import annotations

from datetime import time
from zoneinfo import ZoneInfo

import pytest
from support.drivers.environment import remove_settings

from webhook import cli
from webhook.core.reunite.limits import ReuniteLimits
from webhook.reunite import run
from webhook.reunite.settings import ReuniteSettings

Given = list[ReuniteSettings]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Given:
    """The settings that the command line makes."""
    remove_settings(monkeypatch)
    found: Given = []

    def note(settings: ReuniteSettings, **_: object) -> int:
        found.append(settings)
        return 0

    monkeypatch.setattr(run, "run", note)
    return found


def test_the_defaults_are_those_of_core_and_write_nothing(given: Given) -> None:
    """A user who sets nothing gets a dry run."""
    assert cli.main(["reunite"]) == 0
    (settings,) = given
    assert settings.limits() == ReuniteLimits()
    assert (settings.dry_run, settings.once) == (True, False)


def test_every_limit_can_be_set(given: Given) -> None:
    """Each flag reaches its own limit."""
    flags = {
        "default": "off",
        "apart-seconds": "60",
        "at-once": "3",
        "at-once-per-node": "2",
        "cooldown-seconds": "7200",
        "backoff-seconds": "30",
        "failures": "9",
        "moved-away": "4",
        "windows": "Sat 01:00-05:00, Mon-Fri 22:00-04:00",
        "time-zone": "Europe/Berlin",
    }
    assert cli.main(["reunite", *(word for flag, value in flags.items() for word in (f"--{flag}", value))]) == 0
    limits = given[0].limits()
    first, second = limits.windows
    assert (first.days, first.start, first.end, first.zone) == ({5}, time(1), time(5), ZoneInfo("Europe/Berlin"))
    assert second.text == "Mon-Fri 22:00-04:00"
    assert limits == ReuniteLimits(
        default_on=False,
        apart_seconds=60.0,
        at_once=3,
        at_once_per_node=2,
        cooldown_seconds=7_200.0,
        backoff_seconds=30.0,
        failures=9,
        moved_away=4,
        windows=limits.windows,
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["--windows", "at night"], "got --windows at night: expected DAYS HH:MM-HH:MM", id="a window"),
        pytest.param(["--windows", "Sat 25:00-26:00"], "26:00 is not a time", id="a time"),
        pytest.param(
            ["--time-zone", "Berlin"],
            "got --time-zone Berlin: expected a time zone of the IANA database, such as Europe/Berlin",
            id="a zone",
        ),
        pytest.param(["--time-zone", "../etc"], "got --time-zone ../etc: expected a time zone", id="a path"),
        pytest.param(["--at-once", "-1"], "--at-once: got '-1', expected a number, 0 or more", id="a number"),
    ],
)
def test_a_bad_value_gets_one_clear_sentence(
    words: list[str], sentence: str, given: Given, capsys: pytest.CaptureFixture[str]
) -> None:
    """And exit code 2; nothing was started."""
    assert cli.main(["reunite", *words]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert "Traceback" not in err
    assert given == []
