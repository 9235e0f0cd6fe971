"""Freshness: how old the objects of a cache may be, and whether they may be taken for what the API server has."""

from __future__ import annotations

from math import inf
from typing import Final

STALE_AFTER_SECONDS: Final = 10.0  # most restarts of an API server are shorter
SETTLE_SECONDS: Final = 1.0  # by then a new watch has sent the events that happened while there was none
SILENCE_SECONDS: Final = 90.0
"""The longest time without a sign of life on a watch: an event, or the watch's end in order.

The webhook asks the API server to end each watch after WATCH_SECONDS at most (requests.py). Bookmarks are no such sign:
the API server sends one each minute, but none while the collection's resourceVersion is the one that the watch began
with (cache_watcher.go, process). Without changes, etcd's progress notifications move that resourceVersion, where
somebody has turned them on. The rest is for network and event loop.
"""


class Freshness:
    """The freshness of one cache. All times are seconds of the caller's clock, which only goes forward."""

    def __init__(self) -> None:
        self._known_at = -inf  # the last time at which the objects equaled the server's
        self._watched_from = inf  # since then the watch is up and settled
        self.heard_at = -inf

    def age(self, now: float) -> float:
        """Return the seconds since the objects were last confirmed to be the server's; 0 while the watch is up."""
        if self.is_watched(now):
            return 0.0
        return now - (self.heard_at if self.heard_at >= self._watched_from else self._known_at)

    def fresh(self, now: float) -> bool:
        """Return whether the objects may be taken for what the server has: they are not older than 10 s."""
        return self.age(now) <= STALE_AFTER_SECONDS

    def heard(self, now: float) -> None:
        """Take in that the server sent an event. After 90 s without one the watch no longer counts as up."""
        self.heard_at = now

    def listed(self, at: float) -> None:
        """Take in that a list was whole at the time `at`."""
        self._known_at = at
        self.heard_at = max(at, self.heard_at)

    def watch_up(self, now: float) -> None:
        """Take in that the watch is up. It counts as up after SETTLE_SECONDS."""
        self.heard_at = now
        self._watched_from = now + SETTLE_SECONDS

    def is_watched(self, now: float) -> bool:
        """Return whether the watch is up, has settled, and had an event within the last 90 s."""
        return self._watched_from <= now <= self.heard_at + SILENCE_SECONDS

    def watch_down(self, last_live: float) -> None:
        """Take in that the watch ended. It was certainly alive at `last_live`."""
        if last_live >= self._watched_from:
            self._known_at = last_live
        self._watched_from = inf
