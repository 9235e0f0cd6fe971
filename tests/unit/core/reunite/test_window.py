"""Time windows: what is parsed, and which minutes of a week are in a window."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.reunite.window import DAYS, parse_window

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
CLOCKS = st.sampled_from(["00:00", "00:01", "01:30", "02:30", "5:00", "12:00", "23:59"])


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "zone", "now", "inside"),
    [
        pytest.param("Sat 01:00-05:00", UTC, "2026-08-08T00:59:59Z", False, id="a second before it starts"),
        pytest.param("Sat 01:00-05:00", UTC, "2026-08-08T01:00:00Z", True, id="its first second"),
        pytest.param("Sat 01:00-05:00", UTC, "2026-08-08T04:59:59Z", True, id="its last second"),
        pytest.param("Sat 01:00-05:00", UTC, "2026-08-08T05:00:00Z", False, id="its end"),
        pytest.param("Sat 01:00-05:00", UTC, "2026-08-07T02:00:00Z", False, id="another day"),
        pytest.param("Sat 01:00-05:00", BERLIN, "2026-08-07T23:00:00Z", True, id="Saturday is Friday in UTC"),
        pytest.param("Mon-Fri 22:00-04:00", UTC, "2026-08-08T03:59:59Z", True, id="Friday's night is on Saturday"),
        pytest.param("Mon-Fri 22:00-04:00", UTC, "2026-08-10T03:59:59Z", False, id="Sunday's night is not in it"),
        pytest.param("Sun 23:00-01:00", UTC, "2026-08-10T00:30:00Z", True, id="over the end of the week"),
        pytest.param("Sat-Mon 01:00-02:00", UTC, "2026-08-09T01:00:00Z", True, id="days over the end of the week"),
        pytest.param("Sat-Mon 01:00-02:00", UTC, "2026-08-11T01:00:00Z", False, id="the day after those days"),
        pytest.param("sat 22:00-24:00", UTC, "2026-08-08T23:59:59Z", True, id="24:00 ends the day"),
        pytest.param("sat 22:00-24:00", UTC, "2026-08-09T00:00:00Z", False, id="24:00 is not in it"),
        pytest.param("00:00-24:00", UTC, "2026-08-08T00:00:00Z", True, id="each whole day"),
        pytest.param("Sat 05:00-05:00", UTC, "2026-08-09T04:59:59Z", True, id="the same time is 24 hours later"),
        pytest.param("Sun 02:00-03:00", BERLIN, "2026-03-29T01:00:00Z", False, id="spring: that hour does not exist"),
        pytest.param("Sun 02:00-03:00", BERLIN, "2026-10-25T00:30:00Z", True, id="autumn: the hour's first time"),
        pytest.param("Sun 02:00-03:00", BERLIN, "2026-10-25T01:30:00Z", True, id="autumn: the hour's second time"),
        pytest.param("Sun 01:00-03:00", NEW_YORK, "2026-03-08T06:59:59Z", True, id="spring: before the jump"),
        pytest.param("Sun 01:00-03:00", NEW_YORK, "2026-03-08T07:00:00Z", False, id="spring: the jump ends it"),
    ],
)
def test_a_window_holds_from_its_start_to_just_before_its_end(
    text: str, zone: tzinfo, now: str, *, inside: bool
) -> None:
    """The clock of the zone counts, also on the days on which the zone changes it."""
    assert parse_window(text, zone).contains(_at(now)) is inside


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "expected DAYS", id="nothing"),
        pytest.param("Sat", "expected DAYS", id="no times"),
        pytest.param("Sat01:00-05:00", "expected DAYS", id="no space"),
        pytest.param("Sam 01:00-05:00", "Sam is not one of Mon, Tue", id="no day"),
        pytest.param("Mon-Fry 01:00-05:00", "Fry is not one of Mon, Tue", id="no last day"),
        pytest.param("25:00-05:00", "25:00 is not a time", id="no hour"),
        pytest.param("01:00-24:01", "24:01 is not a time", id="after the end of the day"),
        pytest.param("01:60-05:00", "01:60 is not a time", id="no minute"),
        pytest.param("Sat 24:00-05:00", "24:00 is not a time", id="24:00 as a start is Saturday or Sunday"),
    ],
)
def test_a_text_that_is_not_a_window_says_what_was_expected(text: str, problem: str) -> None:
    """The message names the part that is wrong."""
    with pytest.raises(ValueError, match=problem):
        parse_window(text, UTC)


@given(
    first=st.sampled_from(DAYS),
    last=st.sampled_from(DAYS),
    start=CLOCKS,
    end=CLOCKS | st.just("24:00"),
    zone=st.sampled_from([UTC, BERLIN, NEW_YORK, ZoneInfo("Australia/Lord_Howe")]),
    week=st.sampled_from(["2026-03-05", "2026-03-26", "2026-04-02", "2026-08-06", "2026-10-22", "2026-10-29"]),
    offset=st.integers(0, 8 * 24 * 60),
)
def test_a_window_is_what_a_walk_over_the_clocks_minutes_finds(
    *, first: str, last: str, start: str, end: str, zone: tzinfo, week: str, offset: int
) -> None:
    """The walk begins at each start of the window, and follows the clock minute by minute to its end."""
    moment = datetime.fromisoformat(f"{week}T00:00:00+00:00") + timedelta(minutes=offset)
    local = moment.astimezone(zone).replace(tzinfo=None)
    days, day = [DAYS.index(first)], DAYS.index(first)
    while day != DAYS.index(last):
        day = (day + 1) % 7
        days.append(day)
    begin, stop = _clock(start), _clock(end)
    # Walk back from the moment: the window holds if its start is met before its end is.
    found = False
    for back in range(24 * 60):
        at = local - timedelta(minutes=back)
        if at.time() == stop and begin != stop:
            break
        if at.time() == begin:
            found = at.weekday() in days
            break
    assert parse_window(f"{first}-{last} {start}-{end}", zone).contains(moment.timestamp()) is found


def _clock(text: str) -> time:
    hour, minute = map(int, text.split(":"))
    return time(hour % 24, minute)
