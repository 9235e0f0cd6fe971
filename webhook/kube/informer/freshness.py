"""Freshness: how old what a cache shows may be, and until when it may be taken for what the server has."""

from __future__ import annotations

from math import inf
from typing import Final

STALE_AFTER_SECONDS: Final = 10.0  # an API server is back sooner; a VM's start takes longer than a read
SETTLE_SECONDS: Final = 1.0  # for what happened while we were away to come in, once the watch is up again
SILENCE_SECONDS: Final = 90.0
"""For how long nothing may come of a watch. A healthy one says something every 62.25 s, however quiet its objects are.

The API server sends a bookmark 60 s after the one before (cacher.go, defaultBookmarkFrequency); it looks for those
that are due by whole seconds, every 1.25 s at most (dispatchEvents). The rest is for the way, and for our event loop.
"""


class Freshness:
    """All times are the caller's, in seconds, of a clock that only goes forward."""

    def __init__(self) -> None:
        self._known_at = -inf  # the last time at which the objects were shown to be the server's
        self._watched_from = inf  # from then on the watch shows it, for as long as the server is heard
        self.heard_at = -inf

    def age(self, now: float) -> float:
        """For how long nobody has said that the objects are as the server has them; 0 while the watch is up."""
        if self.is_watched(now):
            return 0.0
        return now - (self.heard_at if self.heard_at >= self._watched_from else self._known_at)

    def fresh(self, now: float) -> bool:
        """Whether the objects may be taken for what the server has."""
        return self.age(now) <= STALE_AFTER_SECONDS

    def heard(self, now: float) -> None:
        """The server has said something. That no more follows is noticed here, whoever was to notice it."""
        self.heard_at = now

    def listed(self, at: float) -> None:
        """A list was whole at this time."""
        self._known_at = at
        self.heard_at = max(at, self.heard_at)

    def watch_up(self, now: float, *, from_list: bool = False) -> None:
        """The watch is up again. What happened in between is still on its way, unless it began with a list."""
        self.heard_at = now
        self._watched_from = now if from_list else now + SETTLE_SECONDS

    def is_watched(self, now: float) -> bool:
        """Whether the watch is up, the server was heard not too long ago, and what had happened before is in."""
        return self._watched_from <= now <= self.heard_at + SILENCE_SECONDS

    def watch_down(self, last_live: float) -> None:
        """The watch is over; it was alive at `last_live` for certain."""
        if last_live >= self._watched_from:
            self._known_at = last_live
        self._watched_from = inf
