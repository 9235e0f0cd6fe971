"""A log record as one line of JSON: time, level, a constant message, the error where there is one, then fields.

Invariant: a text in a line has at most TEXT_MAX_CHARS, because a caller or an object can be the source of it.

Anybody who can connect causes some lines as often as they like: OnceAMinute says which of these are written.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

ENCODER: Final = msgspec.json.Encoder()
TEXT_MAX_CHARS: Final = 1200  # a sentence of 1,024 characters, and what a line says around it
_CUT: Final = "..."
_REPEAT: Final = timedelta(minutes=1)


class JSONFormatter(logging.Formatter):
    """A log record as one line of JSON; `extra={"fields": ...}` (a mapping) is merged in."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        text = ENCODER.encode(head(record)).decode()
        fields = {key: _shortened(value) for key, value in getattr(record, "fields", {}).items()}
        return f"{text[:-1]},{ENCODER.encode(fields).decode()[1:]}" if fields else text


@contextmanager
def written_to_stderr(level: int) -> Iterator[None]:
    """Write what this process and its libraries log in this block, at this level and above.

    Afterwards logging is as it was: a handler that stayed would write to a stream that somebody may have closed.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    root = logging.getLogger()
    handlers, before = root.handlers, root.level
    root.handlers = [handler]
    root.setLevel(level)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(before)


def head(record: logging.LogRecord) -> dict[str, Any]:
    """What every line begins with."""
    line: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC),
        "level": record.levelname.lower(),
        "message": _shortened(record.getMessage()),
    }
    if record.exc_info and (error := record.exc_info[1]):
        line |= {"error": _shortened(f"{type(error).__name__}: {error}"), "at": raised_at(error)}
    return line


def _shortened(value: Any) -> Any:
    """Return the value; a text that is too long without its end."""
    is_long = isinstance(value, str) and len(value) > TEXT_MAX_CHARS
    return value[: TEXT_MAX_CHARS - len(_CUT)] + _CUT if is_long else value


def raised_at(error: BaseException) -> list[str]:
    """Where an error was raised and passed through, as FILE:LINE, outermost first."""
    return [f"{Path(each.filename).name}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]


def failure(error: BaseException) -> dict[str, Any]:
    """Return the log fields of an error: type and code locations. Its message could quote what a caller sent."""
    return {"error": type(error).__name__, "at": raised_at(error)}


class OnceAMinute:
    """Lines by key, of which there must be few. `so_far`: how many there were, by key.

    Each line has the count so far, so that the next line tells how many were left out.
    """

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.so_far: Counter[str] = Counter()
        self._now = now
        self._logged_at: dict[str, datetime] = {}

    def is_due(self, key: str) -> bool:
        """Count a line, and return whether to write it: it is the first of its key for a minute.

        A clock that was set back begins a new minute.
        """
        self.so_far[key] += 1
        now, before = self._now(), self._logged_at.get(key)
        if before is not None and before <= now < before + _REPEAT:
            return False
        self._logged_at[key] = now
        return True
