"""OnceAMinute: log lines that anybody who can connect causes as often as they like. One a minute is written.

Each line has the count so far, so that the next line tells how many were left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

_REPEAT: Final = timedelta(minutes=1)


class OnceAMinute:
    """Lines by key, of which there must be few. `so_far`: how many there were, by key."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.so_far: Counter[str] = Counter()
        self._now = now
        self._logged_at: dict[str, datetime] = {}

    def is_due(self, key: str) -> bool:
        """Count a line, and return whether to write it: it is the first of its key for a minute."""
        self.so_far[key] += 1
        now, before = self._now(), self._logged_at.get(key)
        if before is not None and now < before + _REPEAT:
            return False
        self._logged_at[key] = now
        return True
