"""A log record as one line of JSON: time, level, a constant message, the error where there is one, then fields."""

from __future__ import annotations

import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

ENCODER: Final = msgspec.json.Encoder()


class JSONFormatter(logging.Formatter):
    """A log record as one line of JSON; `extra={"fields": ...}` (a Struct or a mapping) is merged in."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        text = ENCODER.encode(head(record)).decode()
        fields = getattr(record, "fields", None)
        return f"{text[:-1]},{ENCODER.encode(fields).decode()[1:]}" if fields else text


def head(record: logging.LogRecord) -> dict[str, Any]:
    """What every line begins with."""
    line: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC),
        "level": record.levelname.lower(),
        "message": record.getMessage(),
    }
    if record.exc_info and (error := record.exc_info[1]):
        line |= {"error": f"{type(error).__name__}: {error}", "at": raised_at(error)}
    return line


def raised_at(error: BaseException) -> list[str]:
    """Where an error was raised and passed through, as FILE:LINE, outermost first."""
    return [f"{Path(each.filename).name}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
