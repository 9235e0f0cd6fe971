"""RateLimiter: how fast Events may be sent. TTLCache: which Events were sent. The time is always an argument."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
_DOUBLINGS_MAX: Final = 6  # the backoff is at its maximum by then


class RateLimiter:
    """A token bucket with `burst` tokens and `per_second` new ones, and a backoff while the server fails.

    The backoff is doubled from 1 s to 60 s. A longer Retry-After of the server counts, up to 60 s.
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
        """Take a token. Return the seconds until it may be used."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second) - 1
        self._at = now
        return max(0.0, -self._tokens / self._per_second, self._not_before - now)

    def failed(self, now: float, asked_seconds: float = 0.0) -> None:
        """Take in that the server failed or refused, and its Retry-After in seconds."""
        backoff = min(_FIRST_SECONDS * 2.0**self._failures, _LONGEST_SECONDS) * (1 + self._random()) / 2
        self._failures = min(self._failures + 1, _DOUBLINGS_MAX)
        self._not_before = now + max(backoff, min(asked_seconds, _LONGEST_SECONDS))

    def succeeded(self) -> None:
        """Take in that the server accepted a request: the backoff ends."""
        self._failures = 0
        self._not_before = 0.0


class TTLCache:
    """A set of keys, each for `seconds` after it was added. With more than `most` keys the oldest are dropped."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._until: dict[Hashable, float] = {}  # in the order in which they end

    def __len__(self) -> int:
        return len(self._until)

    def has(self, key: Hashable, now: float) -> bool:
        """Return whether the key was added within the last `seconds`."""
        return self._until.get(key, now) > now

    def add(self, key: Hashable, now: float) -> None:
        """Add the key, or add it again."""
        self._until.pop(key, None)
        self._until[key] = now + self._seconds
        for each, until in list(self._until.items()):
            if until > now and len(self._until) <= self._most:
                break
            del self._until[each]
