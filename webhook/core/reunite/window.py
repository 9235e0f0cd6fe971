"""A time window of a week, such as `Sat 01:00-05:00`, in a time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final

from msgspec import Struct

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EXPECTED: Final = "expected DAYS HH:MM-HH:MM, such as `Sat 01:00-05:00`, `Mon-Fri 22:00-04:00` or `01:00-05:00`"
_FORM: Final = re.compile(r"(?:([A-Za-z]{3})(?:-([A-Za-z]{3}))? +)?(\d\d?):(\d\d)-(\d\d?):(\d\d)")
_MIDNIGHT: Final = ("24", "00")  # the end of a day, as ISO 8601 has it; never a start


class Window(Struct, frozen=True, kw_only=True):
    """A window that starts on each of `days` (0 is Monday) at `start`, and ends at `end`, on the next day if that is
    not later. `zone` is where the clock is read.
    """

    days: frozenset[int]
    start: time
    end: time
    zone: tzinfo
    text: str

    def contains(self, now: float) -> bool:
        """Whether `now` (seconds since 1970) is in the window."""
        local = datetime.fromtimestamp(now, UTC).astimezone(self.zone)
        clock, day = local.time(), local.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= clock < self.end
        began_today = day in self.days and clock >= self.start
        return began_today or ((local - timedelta(days=1)).weekday() in self.days and clock < self.end)


def parse_window(text: str, zone: tzinfo) -> Window:
    """Return the window that `text` describes.

    Raises:
        ValueError: says what was expected.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(EXPECTED)
    first, last, *clock = match.groups()
    end = time() if tuple(clock[2:]) == _MIDNIGHT else _time(*clock[2:])
    return Window(days=_days(first, last), start=_time(*clock[:2]), end=end, zone=zone, text=text.strip())


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(len(DAYS)))
    start = _day(first)
    end = start if last is None else _day(last)
    return frozenset((start + each) % len(DAYS) for each in range((end - start) % len(DAYS) + 1))


def _day(name: str) -> int:
    if name.capitalize() not in DAYS:
        raise ValueError(f"{EXPECTED}; {name} is not one of {', '.join(DAYS)}")
    return DAYS.index(name.capitalize())


def _time(hour: str, minute: str) -> time:
    try:
        return time(int(hour), int(minute))
    except ValueError:
        raise ValueError(f"{EXPECTED}; {hour}:{minute} is not a time") from None
