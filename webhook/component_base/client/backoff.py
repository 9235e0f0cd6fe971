"""How long to wait after failures before the next request to an API server."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

_BACKOFF_SECONDS: Final = 0.1
_BACKOFF_MAX_SECONDS: Final = 10.0  # a cache then sends 6 requests a minute, which costs the API server nothing
_FAILURES_MAX: Final = 10  # 0.1 s doubled 10 times is more than the maximum
_RETRY_AFTER_MAX_SECONDS: Final = 60.0


class Backoff:
    """The wait after failures: doubled each time, from 0.1 s to 10 s, and at least the server's Retry-After.

    All times are seconds of a clock that only goes forward. `random` returns numbers from 0 to 1: clients that failed
    at the same time come back at different times.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._failures = 0
        self._not_before = -inf

    def wait(self, now: float) -> float:
        """Return the seconds until the next request is due; 0 or less if it is due now."""
        return self._not_before - now

    def failed(self, now: float, retry_after_seconds: float) -> None:
        """Take a failure into account. The server asked for `retry_after_seconds`; at most 60 s of it count."""
        backoff = min(_BACKOFF_SECONDS * 2.0**self._failures, _BACKOFF_MAX_SECONDS) * (1 + self._random()) / 2
        asked = min(retry_after_seconds, _RETRY_AFTER_MAX_SECONDS) * (1 + self._random() / 4)
        self._not_before = now + max(backoff, asked)
        self._failures = min(self._failures + 1, _FAILURES_MAX)

    def succeeded(self) -> None:
        """End the run of failures: the next one waits the shortest time."""
        self._failures = 0
