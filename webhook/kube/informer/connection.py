"""The requests of a list and watch, how they fail, and how old the objects of a cache may be.

The upstream source is client-go tools/cache/reflector.go: `watchList` (streaming list), `list` (pages) and `watch`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import inf
from typing import Final, NamedTuple

from msgspec import Struct

from webhook.component_base.client.transport import Failure
from webhook.kube.informer.store import Resource

STALE_AFTER_SECONDS: Final = 10.0  # most restarts of an API server are shorter
SETTLE_SECONDS: Final = 1.0  # by then a new watch has sent the events that happened while there was none
SILENCE_SECONDS: Final = 90.0
"""The longest time without a sign of life on a watch: an event, or the watch's end in order.

The webhook asks the API server to end each watch after WATCH_SECONDS at most. Bookmarks are no such sign:
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


class Cause(Enum):
    """Why a list or watch ended too early. The metric kubevirt_coschedule_cache_interruptions_total has it as label."""

    EXPIRED = "expired"  # 410: the API server no longer has the events since this resourceVersion
    WENT_BACK = "went back"  # the API server's resourceVersion is lower than before: restored from a backup
    CUT = "cut"
    SILENT = "silent"
    GARBAGE = "garbage"
    THROTTLED = "throttled"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_INSTALLED = "not installed"
    UNSUPPORTED = "unsupported"  # the API server has no streaming lists: paged lists follow
    ERROR = "error"


_CAUSES: Final = {
    401: Cause.UNAUTHORIZED,
    403: Cause.FORBIDDEN,
    410: Cause.EXPIRED,
    429: Cause.THROTTLED,
    503: Cause.THROTTLED,
}
_KEEPS_VERSION: Final = (Cause.UNAUTHORIZED, Cause.FORBIDDEN, Cause.THROTTLED)


class Fault(NamedTuple):
    """Why an answer is of no use: the cause, and a sentence for the log and /readyz."""

    cause: Cause
    sentence: str


def cause_of(failure: Failure) -> Cause:
    """Return the cause of a failure: by its status code, if the API server does not say that it has no such kind."""
    return Cause.NOT_INSTALLED if failure.absent else _CAUSES.get(failure.code, Cause.ERROR)


def needs_list(failure: Failure) -> bool:
    """Return whether the same request would fail again, so that only a new list helps."""
    if cause_of(failure) in _KEEPS_VERSION:
        return False
    return failure.too_new or 400 <= failure.code < 500  # noqa: PLR2004 - HTTP's own numbers


WATCH_SECONDS: Final = (60, 80)  # after which the API server ends a watch: at least, at most, below SILENCE_SECONDS
_LIST_SECONDS: Final = (300, 600)  # a streaming list of a large cluster takes its time
_STREAMING_LIST: Final = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))


class Request(Struct, frozen=True):
    """GET the collection with this query. Give up if no byte came for `silence_seconds`."""

    query: tuple[tuple[str, str], ...]
    silence_seconds: float = SILENCE_SECONDS


class Wait(Struct, frozen=True):
    """Ask for the next step again after `seconds`."""

    seconds: float


class RequestMode(Enum):
    """What the request that is under way asks for."""

    NOTHING = "nothing"
    STREAM = "streaming list"
    PAGE = "paged list"
    WATCH = "watch"


def streaming_list(resource: Resource, random: Callable[[], float]) -> Request:
    """Return the request of a streaming list (KEP-3157): the newest state of all objects as events, then a bookmark.

    The request names no resourceVersion, so the API server reads the latest one from etcd. After a restart the webhook
    therefore never shows an older state than before.
    """
    return _watch(resource, random, _LIST_SECONDS, *_STREAMING_LIST)


def watch(resource: Resource, random: Callable[[], float], version: str) -> Request:
    """Return the request for all events since the resourceVersion `version`."""
    return _watch(resource, random, WATCH_SECONDS, ("resourceVersion", version))


def page(resource: Resource, objects: int, continue_token: str) -> Request:
    """Return the request for the next page of `objects` objects; an empty `continue_token` asks for the first page."""
    query = [("limit", str(objects))]
    if continue_token:
        query.append(("continue", continue_token))
    return Request((*query, *_selectors(resource)))


def _watch(resource: Resource, random: Callable[[], float], bounds: tuple[int, int], *more: tuple[str, str]) -> Request:
    """The API server ends the answer at a time between `bounds`, by chance: so clients spread over its replicas."""
    least, most = bounds
    seconds = str(int(least + (most - least) * random()))
    return Request(
        (("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", seconds), *more, *_selectors(resource))
    )


def _selectors(resource: Resource) -> tuple[tuple[str, str], ...]:
    labels = (("labelSelector", resource.selector),) if resource.selector else ()
    fields = (("fieldSelector", resource.fields),) if resource.fields else ()
    return labels + fields
