"""What `serve` writes to its log, and how: a line for each thing, as JSON or as text, on standard error.

The line of an admission goes past `logging`: that costs three times as much. In a storm the first lines of each second
are written and the others counted. Names of objects only: never a field's content; of what libraries say, warnings.
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

Form = Literal["json", "text"]
Level = Literal["debug", "info", "warning", "error"]
Counts = Mapping[tuple[str, ...], int]
Later = Callable[[float, Callable[[], None]], object]

ADMISSIONS_PER_SECOND: Final = 100  # 30 KB of log a second; a VM's start is one
_SECOND: Final = 1.0


class Storm:
    """Lets the first lines of each second pass and counts the others by key; `tell` gets the counts as a second ends.

    Attributes:
        left_out: how many did not pass so far.
    """

    def __init__(
        self,
        per_second: int,
        tell: Callable[[Counts], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Later | None = None,
    ) -> None:
        self.left_out = 0
        self._per_second = per_second
        self._tell = tell
        self._clock = clock
        self._later = later or _on_the_loop
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._ends = 0.0
        self._room = 0

    def passes(self, *key: str) -> bool:
        """Whether this line is to be written."""
        now = self._clock()
        if now >= self._ends:
            self.flush()
            self._ends, self._room = now + _SECOND, self._per_second
        if self._room:
            self._room -= 1
            return True
        if not self._counts:
            self._later(self._ends - now, self.flush)
        self._counts[key] += 1
        self.left_out += 1
        return False

    def flush(self) -> None:
        """Tell what was left out and not told yet."""
        if self._counts:
            counts, self._counts = self._counts, Counter()
            self._tell(counts)


class Log:
    """The log of a process. Lines that tell of one call (they carry its `uid`) are bounded to `per_second`.

    Those of admissions are bounded by themselves.
    """

    def __init__(
        self,
        form: Form = "json",
        level: Level = "info",
        per_second: int = ADMISSIONS_PER_SECOND,
        *,
        later: Later | None = None,
    ) -> None:
        self._form = form
        self._line = _json_line if form == "json" else _text_line
        self._number = logging.getLevelNamesMapping()[level.upper()]
        self._storm = Storm(per_second, _left_out("admissions left out"), later=later)
        self._calls = Storm(per_second, _left_out("lines left out"), later=later)
        self._tells_admissions = self._number <= logging.INFO

    def start(self) -> None:
        """Write from now on what this process logs, ours and that of libraries."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(log_line.JSONFormatter() if self._form == "json" else TextFormatter())
        handler.addFilter(self._is_written)
        # A library's lower levels tell of bodies and headers (kubernetes-asyncio's rest.py does): they stay out.
        logging.basicConfig(level=max(self._number, logging.WARNING), handlers=[handler], force=True)
        LOGGER.setLevel(self._number)

    @property
    def left_out(self) -> int:
        """How many lines were not written, for there were too many."""
        return self._storm.left_out + self._calls.left_out

    def note(self, record: AdmissionRecord) -> None:
        """Write the line of a call."""
        if self._tells_admissions and self._storm.passes(record.decision, record.reason):
            stream = sys.stderr.buffer  # the text layer above it would encode the line once more
            stream.write(self._line(record))
            stream.flush()

    def flush(self) -> None:
        """Tell what was left out and not told yet: the end has come."""
        self._storm.flush()
        self._calls.flush()

    def _is_written(self, line: logging.LogRecord) -> bool:
        fields = getattr(line, "fields", None)
        return not isinstance(fields, dict) or "uid" not in fields or self._calls.passes(line.getMessage())


def failure(error: BaseException) -> dict[str, Any]:
    """Fields that tell an error without its words, which may quote what a caller sent: its type and its places."""
    return {"error": type(error).__name__, "at": log_line.raised_at(error)}


class TextFormatter(logging.Formatter):
    """A log record as one line of text: time, level, message, and NAME=VALUE of the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        return _text({**log_line.head(record), **msgspec.to_builtins(getattr(record, "fields", None) or {})})


def _json_line(record: AdmissionRecord) -> bytes:
    return log_line.ENCODER.encode(record) + b"\n"


def _text_line(record: AdmissionRecord) -> bytes:
    return f"{_text(record)}\n".encode()


def _text(told: AdmissionRecord | Mapping[str, Any]) -> str:
    """In ASCII: nothing that a caller sends breaks the line, or speaks to a terminal."""
    when, level, message, *fields = msgspec.to_builtins(told).items()
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
    return json.dumps(value).replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is


def _left_out(message: str) -> Callable[[Counts], None]:
    """What tells how many lines were left out, and of what."""

    def tell(counts: Counts) -> None:
        by = {" ".join(key): count for key, count in counts.items()}
        LOGGER.info(message, extra={"fields": {"left_out": sum(by.values()), "by": by}})

    return tell


def _on_the_loop(seconds: float, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # no loop: the next line tells
        asyncio.get_running_loop().call_later(seconds, call)
