"""A log line is JSON on standard error: time, level, a constant message, then fields. Never a key."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

LOGGER: Final = logging.getLogger("certs")


class JSONFormatter(logging.Formatter):
    """A log record as one line; `extra={"fields": ...}` is merged in."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1]:
            line["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        return msgspec.json.encode(line).decode()


def start() -> None:
    """Send what this process logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def note(message: str, level: int = logging.INFO, **fields: object) -> None:
    """One line: a constant message, and its fields."""
    LOGGER.log(level, message, extra={"fields": fields})
