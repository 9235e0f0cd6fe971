"""CacheState: how one cache is."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from webhook.kube.informer.backoff import Cause
from webhook.kube.informer.list_watch import ListWatch


class CacheState(Struct, frozen=True, kw_only=True):
    """How one cache is.

    Attributes:
        fresh: calls are answered from it.
        detail: why not, or how many objects it holds, as a sentence.
        heard_seconds: since the API server was last heard; None where it never was.
        causes: how often each made it begin anew.
        unreadable: objects that were left out so far.
    """

    title: str
    fresh: bool
    detail: str
    objects: int
    heard_seconds: float | None
    causes: Mapping[Cause, int]
    unreadable: int


def _state(cache: ListWatch, now: float) -> CacheState:
    known = f"{len(cache.objects)} objects"
    if cache.unreadable:
        known += f", {cache.unreadable} unreadable ones left out so far"
    if cache.synced:
        known += (
            f", known {cache.age(now):.0f} s ago" if cache.problem else f", heard from {cache.heard(now):.0f} s ago"
        )
    else:
        known = "not synced"
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
