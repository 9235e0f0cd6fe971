"""The log of `keep`: lines of JSON on standard error, with names and reasons. The log never contains a key."""

from __future__ import annotations

import logging
import sys
from typing import Final

from webhook.component_base.log_line import JSONFormatter

LOGGER: Final = logging.getLogger("certs")


def start() -> None:
    """Send what this process logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def note(message: str, level: int = logging.INFO, **fields: object) -> None:
    """One line: a constant message, and its fields."""
    LOGGER.log(level, message, extra={"fields": fields})
