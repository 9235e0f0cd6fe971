"""The requests of a list and watch, as client-go's Reflector sends them.

The upstream source is client-go tools/cache/reflector.go: `watchList` (streaming list), `list` (pages) and `watch`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from msgspec import Struct

from webhook.kube.informer.freshness import SILENCE_SECONDS
from webhook.kube.informer.resource import Resource

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
