"""LookupCounts: the number of lookups of one kind by result, for the metrics.

One event loop writes and reads the counts. An admission makes about ten lookups, so counting one is a single addition.
"""

from __future__ import annotations


class LookupCounts:
    """The lookups of one kind, in its cache and by live reads.

    Attributes:
        hit: the fresh cache had the object.
        miss: the fresh cache did not have the object; a live read follows.
        stale: the cache was not fresh; a live read follows.
        found: a live read returned the object.
        absent: a live read showed that the object does not exist.
        failed: a live read got no usable answer.
        late: a live read had no answer before the deadline of an admission. Its answer is counted when it comes.
    """

    __slots__ = ("absent", "failed", "found", "hit", "late", "miss", "stale")

    def __init__(self) -> None:
        self.hit = self.miss = self.stale = 0
        self.found = self.absent = self.failed = 0
        self.late = 0
