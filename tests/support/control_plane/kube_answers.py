"""What an API server answers: a body with warnings, or an error in its words."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple


class ApiError(Exception):
    """What the API server refused, in its words."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        try:
            told = json.loads(body)
            self.message, self.reason = str(told.get("message")), str(told.get("reason"))
        except ValueError:
            self.message, self.reason = body.decode(errors="replace"), ""
        self.status = status
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class Answer(NamedTuple):
    """A body, and the warnings that came with it (of webhooks, of admission)."""

    body: Any
    warnings: list[str]


def _unquoted(warning: str) -> str:
    """The text of a Warning header: `299 - "text"`, quotes and backslashes in it escaped."""
    return re.sub(r"\\(.)", r"\1", warning.split('"', 1)[1].removesuffix('"'))
