"""CacheState: whether one cache is up to date, for /readyz and the metrics."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from webhook.kube.informer.faults import Cause
from webhook.kube.informer.list_watch import ListWatch


class CacheState(Struct, frozen=True, kw_only=True):
    """The state of one cache.

    Attributes:
        fresh: whether admissions are answered from the cache.
        detail: a sentence with the number of objects, and with the problem if there is one.
        heard_seconds: seconds since the API server last sent an event or a list; None if the cache was never synced.
        causes: how many lists and watches ended too early, by cause.
        unreadable: how many objects were left out so far because they could not be decoded.
    """

    title: str
    fresh: bool
    detail: str
    objects: int
    heard_seconds: float | None
    causes: Mapping[Cause, int]
    unreadable: int


def cache_state(cache: ListWatch, now: float) -> CacheState:
    """Return the state of this cache at the time `now` (event-loop time)."""
    known = f"{len(cache.objects)} objects"
    if cache.unreadable:
        known += f", {cache.unreadable} unreadable ones left out so far"
    if not cache.synced:
        known = "not synced"
    elif cache.problem or cache.age(now):  # between two watches there is no problem
        known += f", known {cache.age(now):.0f} s ago"
    else:
        known += f", last event {cache.heard(now):.0f} s ago"
    detail = f"{known}: {cache.problem}" if cache.problem else known
    return CacheState(
        title=cache.resource.title,
        fresh=cache.fresh(now),
        detail=detail,
        objects=len(cache.objects),
        heard_seconds=cache.heard(now) if cache.synced else None,
        causes={cause: cache.causes[cause] for cause in Cause},
        unreadable=cache.unreadable,
    )
