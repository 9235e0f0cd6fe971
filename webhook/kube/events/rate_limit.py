"""How fast something may be sent, and what was sent already: numbers only, with the time as an argument."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
_DOUBLINGS_MAX: Final = 6  # the back-off is at its longest by then


class RateLimiter:
    """A token bucket, and a back-off from a server that fails: `burst` at once, and `per_second` in the long run.

    Where the server asks for more time (Retry-After) it gets that, up to a minute.
    """

    def __init__(self, per_second: float, burst: int, *, random: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._random = random
        self._tokens = float(burst)
        self._at = 0.0
        self._not_before = 0.0
        self._failures = 0

    def wait(self, now: float) -> float:
        """Take a token. Returns the seconds until it may be used."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second) - 1
        self._at = now
        return max(0.0, -self._tokens / self._per_second, self._not_before - now)

    def failed(self, now: float, asked_seconds: float = 0.0) -> None:
        """The server failed, or refused; it asked to be left alone for so long."""
        backoff = min(_FIRST_SECONDS * 2.0**self._failures, _LONGEST_SECONDS) * (1 + self._random()) / 2
        self._failures = min(self._failures + 1, _DOUBLINGS_MAX)
        self._not_before = now + max(backoff, min(asked_seconds, _LONGEST_SECONDS))

    def went_well(self) -> None:
        """The server answered as it should."""
        self._failures = 0
        self._not_before = 0.0


class TTLCache:
    """What happened within the last `seconds`; of more than `most` things the oldest are forgotten."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._until: dict[Hashable, float] = {}  # in the order in which they are forgotten

    def __len__(self) -> int:
        return len(self._until)

    def has(self, what: Hashable, now: float) -> bool:
        """Whether it did."""
        return self._until.get(what, now) > now

    def add(self, what: Hashable, now: float) -> None:
        """It happens now."""
        self._until.pop(what, None)
        self._until[what] = now + self._seconds
        for each, until in list(self._until.items()):
            if until > now and len(self._until) <= self._most:
                break
            del self._until[each]
