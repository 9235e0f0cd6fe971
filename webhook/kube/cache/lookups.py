"""How often objects of one kind were looked for, and what became of it: plain counts, for metrics.

One event loop writes and reads them. A lookup in a cache happens ten times in an admission: counting it is an addition.
"""

from __future__ import annotations


class LookupCounts:
    """Of one kind.

    Attributes:
        hit: the cache had it.
        miss: the cache, which is fresh, has it not: a read tells.
        stale: the cache was not fresh, and nothing was taken from it.
        found: a request to the API server brought it.
        absent: the API server has it not.
        failed: a request brought no answer that is of use.
        late: a call's deadline was over before it came. What was waited for may still come, and is counted then.
    """

    __slots__ = ("absent", "failed", "found", "hit", "late", "miss", "stale")

    def __init__(self) -> None:
        self.hit = self.miss = self.stale = 0
        self.found = self.absent = self.failed = 0
        self.late = 0
