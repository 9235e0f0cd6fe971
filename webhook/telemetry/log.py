"""The log of `serve`: one line for each record, as JSON or as text, on standard error.

The line of an admission does not use `logging`, which takes three times as long. If there are too many lines, the first
ones of each second are written, and the others are counted. A line has names of objects only, never the content of a
field. Libraries log at level warning and above.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from webhook.component_base import log_line
from webhook.telemetry.record import LOGGER, AdmissionRecord

LogFormat = Literal["json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]
Counts = Mapping[tuple[str, ...], int]
CallLater = Callable[[float, Callable[[], None]], object]

ADMISSIONS_PER_SECOND: Final = 100  # 30 KB of log a second; the start of a VM is one line
_SECOND: Final = 1.0


class LineLimiter:
    """Allows the first `per_second` lines of each second, and counts the others by key.

    `on_left_out` gets these counts when the second ends. `call_later` starts a timer; the default is the event loop's.

    Attributes:
        left_out: how many lines were not allowed so far.
    """

    def __init__(
        self,
        per_second: int,
        on_left_out: Callable[[Counts], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        call_later: CallLater | None = None,
    ) -> None:
        self.left_out = 0
        self._per_second = per_second
        self._on_left_out = on_left_out
        self._clock = clock
        self._call_later = call_later or _call_later_on_loop
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._ends = 0.0
        self._allowed = 0

    def allows(self, *key: str) -> bool:
        """Count a line of this key. Return whether it may be written."""
        now = self._clock()
        if now >= self._ends:
            self.flush()
            self._ends, self._allowed = now + _SECOND, self._per_second
        if self._allowed:
            self._allowed -= 1
            return True
        if not self._counts:
            self._call_later(self._ends - now, self.flush)
        self._counts[key] += 1
        self.left_out += 1
        return False

    def flush(self) -> None:
        """Report the counts that were not reported yet."""
        if self._counts:
            counts, self._counts = self._counts, Counter()
            self._on_left_out(counts)


class Log:
    """The log of a process.

    In each second it writes at most `per_second` lines of admissions, and as many other lines that have the `uid` of a
    call. Lines without a `uid` are not limited.
    """

    def __init__(
        self,
        log_format: LogFormat = "json",
        level: LogLevel = "info",
        per_second: int = ADMISSIONS_PER_SECOND,
        *,
        call_later: CallLater | None = None,
    ) -> None:
        self._format = log_format
        self._line = _json_line if log_format == "json" else _text_line
        self._number = logging.getLevelNamesMapping()[level.upper()]
        self._admissions = LineLimiter(per_second, _log_left_out("admissions left out"), call_later=call_later)
        self._calls = LineLimiter(per_second, _log_left_out("lines left out"), call_later=call_later)
        self._logs_admissions = self._number <= logging.INFO

    def start(self) -> None:
        """Write all log records of this process from now on, those of libraries too."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(log_line.JSONFormatter() if self._format == "json" else TextFormatter())
        handler.addFilter(self._is_written)
        # At lower levels libraries log bodies and headers (kubernetes-asyncio: rest.py).
        logging.basicConfig(level=max(self._number, logging.WARNING), handlers=[handler], force=True)
        LOGGER.setLevel(self._number)

    @property
    def left_out(self) -> int:
        """How many lines were not written, because there were too many in one second."""
        return self._admissions.left_out + self._calls.left_out

    def write(self, record: AdmissionRecord) -> None:
        """Write the line of an admission, unless there were too many in this second."""
        if self._logs_admissions and self._admissions.allows(record.decision, record.reason):
            stream = sys.stderr.buffer  # the text layer above would encode the line again
            stream.write(self._line(record))
            stream.flush()

    def flush(self) -> None:
        """Write the counts of left-out lines that were not written yet. Call this before the process ends."""
        self._admissions.flush()
        self._calls.flush()

    def _is_written(self, line: logging.LogRecord) -> bool:
        fields = getattr(line, "fields", None)
        return not isinstance(fields, dict) or "uid" not in fields or self._calls.allows(line.getMessage())


def failure(error: BaseException) -> dict[str, Any]:
    """Return the log fields of an error: type and code locations. Its message could quote what a caller sent."""
    return {"error": type(error).__name__, "at": log_line.raised_at(error)}


class TextFormatter(logging.Formatter):
    """Formats a log record as one line of text: time, level, message, and NAME=VALUE of the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without its newline."""
        return _text({**log_line.head(record), **msgspec.to_builtins(getattr(record, "fields", None) or {})})


def _json_line(record: AdmissionRecord) -> bytes:
    return log_line.ENCODER.encode(record) + b"\n"


def _text_line(record: AdmissionRecord) -> bytes:
    return f"{_text(record)}\n".encode()


def _text(record: AdmissionRecord | Mapping[str, Any]) -> str:
    """Return the line in ASCII, so that no text of a caller breaks the line or controls a terminal."""
    when, level, message, *fields = msgspec.to_builtins(record).items()
    pairs = "".join(f" {name}={_value(value)}" for name, value in fields)
    return f"{when[1]} {level[1].upper():7} {_quoted(message[1])[1:-1]}{pairs}"


def _value(value: object) -> str:
    if isinstance(value, list | tuple) and all(isinstance(each, str) and _is_plain(each) for each in value):
        return ",".join(value)
    if isinstance(value, str) and _is_plain(value):
        return value
    return _quoted(value)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and bool(text) and not set(' ",=') & set(text)


def _quoted(value: object) -> str:
    return json.dumps(value).replace("\x7f", "\\u007f")  # the only control character that JSON does not escape


def _log_left_out(message: str) -> Callable[[Counts], None]:
    """Return a function that logs `message` with the number of left-out lines, by key."""

    def log_counts(counts: Counts) -> None:
        by = {" ".join(key): count for key, count in counts.items()}
        LOGGER.info(message, extra={"fields": {"left_out": sum(by.values()), "by": by}})

    return log_counts


def _call_later_on_loop(seconds: float, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # without an event loop, the next line flushes
        asyncio.get_running_loop().call_later(seconds, call)
