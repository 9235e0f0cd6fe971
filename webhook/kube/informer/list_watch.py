"""ListWatch: list and watch of one collection as a state machine, without I/O, clock or chance of its own.

The driver asks `next` what to do, does it, and tells what came: `opened`, `feed` for each piece of the body, `ended`.
The machine keeps `objects`. Contract, as client-go's Reflector has it:

- `objects` is either empty, with `synced` False, or the whole collection as it was at one moment; it follows the
  server's events in their order and never goes back. A list in progress is never visible.
- It may lag. While the watch is up that is the way of an event; after the watch is lost, `age` says how old it may be,
  and `fresh` holds for a while (freshness.STALE_AFTER_SECONDS). A connection that died without a word is noticed by
  its silence, and so is a driver that no longer drives: what was not heard for that long is not fresh.
- An object that was deleted while the watch was away disappears with the next list or event.

Fed byte by byte or whole, it comes to the same objects. Nothing here raises on what a server sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Any, Final

from webhook.kube.client.wire import Decoders, Failure, NotJSON
from webhook.kube.informer.backoff import (
    _BACKOFF_MAX_SECONDS,
    _BACKOFF_SECONDS,
    _CAUSES,
    _FAILURES_MAX,
    _KEEPS_VERSION,
    _PAGE_OBJECTS_MAX,
    _RETRY_AFTER_MAX_SECONDS,
    Cause,
)
from webhook.kube.informer.freshness import Freshness
from webhook.kube.informer.index import Index
from webhook.kube.informer.requests import _WATCH_SECONDS, Request, Wait, _Doing
from webhook.kube.informer.resource import Resource

_HEALTHY_SECONDS: Final = 2.0  # a watch that was up for so long ends a run of failures
_BODY_MAX_BYTES: Final = 256 * 1024 * 1024
_FRAME_MAX_BYTES: Final = 16 * 1024 * 1024  # ten times the largest object that etcd takes
_ERROR_MAX_BYTES: Final = 64 * 1024


class ListWatch:
    """One collection. `objects`: cache key -> record; `index`: what the resource's index says of them.

    `causes`: how often each made it begin anew.
    """

    def __init__(self, resource: Resource, *, random: Callable[[], float], streams: bool = True) -> None:
        """Args: streams: False where it should be listed by pages, without the streaming list."""
        self.resource = resource
        self.objects: dict[str, Any] = {}
        self.index = resource.index() if resource.index else None
        self.synced = False
        self.problem = "not listed yet"
        self.causes: Counter[Cause] = Counter()
        self.unreadable = 0
        self._random = random
        self._decoders = Decoders(resource.wire)
        self._streams = streams
        self._version = ""  # up to which `objects` is whole; empty: list first
        self._building: dict[str, Any] | None = None
        self._changed: list[str] = []  # of those in the list under way that are not as they are shown
        self._continue = ""
        self._page_objects = resource.page_objects
        self._failures = 0
        self._not_before = -inf
        self._doing = _Doing.NOTHING
        self._refused = 0
        self._opened_at = 0.0
        self._buffer = bytearray()
        self._fault: tuple[Cause, str] | None = None
        self._retry_after = 0.0
        self._freshness = Freshness()
        self._asked_at = 0.0

    # What a reader asks.

    def age(self, now: float) -> float:
        """For how many seconds nobody has said that `objects` is as the server has it; 0 while the watch is up."""
        return self._freshness.age(now)

    def fresh(self, now: float) -> bool:
        """Whether `objects` may be taken for what the server has."""
        return self.synced and self._freshness.fresh(now)

    def heard(self, now: float) -> float:
        """Seconds since the server was heard: an event, a bookmark, a list, or that a watch begins."""
        return now - self._freshness.heard_at

    # What the driver does.

    def next(self, now: float) -> Request | Wait:
        """What to do at this time."""
        if now < self._not_before:
            return Wait(self._not_before - now)
        self._refused, self._fault, self._retry_after = 0, None, 0.0
        self._opened_at = inf  # until it is: a server that can't be reached is no healthy one
        self._buffer.clear()
        if self._version:
            self._doing = _Doing.WATCH
            return self._watch_request(("resourceVersion", self._version))
        if self._streams:
            # Without a resourceVersion the list is the most recent one: a restart of ours never shows an older past.
            self._doing = _Doing.STREAM
            self._build(now)
            return self._watch_request(("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
        self._doing = _Doing.PAGE
        if self._building is None:
            self._build(now)
        query = [("limit", str(self._page_objects))]
        if self._continue:
            query.append(("continue", self._continue))
        return Request((*query, *self._selector()))

    def opened(self, status: int, retry_after: str | None, now: float) -> None:
        """The server has answered with this HTTP status; `retry_after` is that header."""
        self._opened_at = now
        if status != 200:  # noqa: PLR2004 - HTTP's own number
            self._refused = status
            self._retry_after = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
        elif self._doing is _Doing.WATCH:
            self._freshness.watch_up(now)

    def settle(self, now: float) -> None:
        """To be called SETTLE_SECONDS after `opened`: a watch that is still up by then has left its problem behind."""
        if self._freshness.is_watched(now):
            self.problem = ""

    def feed(self, chunk: bytes, now: float) -> bool:
        """A piece of the body. False says that no more of it is wanted."""
        if self._refused:
            self._buffer += chunk[: _ERROR_MAX_BYTES - len(self._buffer)]
        elif self._doing is _Doing.PAGE:
            self._buffer += chunk
            if len(self._buffer) > _BODY_MAX_BYTES:
                self._fault = (Cause.GARBAGE, f"a list of more than {_BODY_MAX_BYTES} bytes")
        else:
            self._frames(chunk, now)
        return self._fault is None

    def ended(self, now: float, error: str = "", *, silent: bool = False) -> None:
        """The answer is over: in order, or with `error` on the way; `silent`: because nothing came any more."""
        doing, self._doing = self._doing, _Doing.NOTHING
        # A connection that broke may have been dead since the last event, and a watch that the server gave up may have
        # missed some since; an orderly end was live.
        self._freshness.watch_down(self._freshness.heard_at if error or self._fault else now)
        watched = doing is not _Doing.PAGE and self._building is None and not self._refused
        if watched and now - self._opened_at >= _HEALTHY_SECONDS:
            self._failures = 0
        if self._fault:
            self._fail(*self._fault, now)
        elif self._refused:
            self._refuse(doing, now)
        elif error:
            self._fail(Cause.SILENT if silent else Cause.CUT, error, now)
        elif doing is _Doing.PAGE:
            self._page(now)
        elif self._buffer or (doing is _Doing.STREAM and self._building is not None):
            self._fail(Cause.CUT, "the answer ended before its end", now)
        elif now - self._opened_at < _HEALTHY_SECONDS:
            self._fail(Cause.CUT, "the watch ended as soon as it had begun", now)
        if doing is _Doing.STREAM:
            self._building = None

    # Requests.

    def _watch_request(self, *more: tuple[str, str]) -> Request:
        seconds = str(int(_WATCH_SECONDS * (1 + self._random())))
        return Request(
            (("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", seconds), *more, *self._selector())
        )

    def _selector(self) -> tuple[tuple[str, str], ...]:
        labels = (("labelSelector", self.resource.selector),) if self.resource.selector else ()
        fields = (("fieldSelector", self.resource.fields),) if self.resource.fields else ()
        return labels + fields

    # What comes in.

    def _frames(self, chunk: bytes, now: float) -> None:
        """Take in every whole line; the rest waits for its end."""
        if b"\n" not in chunk:
            self._buffer += chunk
            self._limit(self._buffer)
            return
        lines = (bytes(self._buffer) + chunk).split(b"\n")
        self._buffer[:] = lines.pop()
        for line in filter(None, lines):
            self._limit(line)
            if not self._fault:
                self._event(line, now)
            if self._fault:
                return
        self._limit(self._buffer)

    def _limit(self, frame: bytes | bytearray) -> None:
        if len(frame) > _FRAME_MAX_BYTES:
            self._fault = (Cause.GARBAGE, f"an event of more than {_FRAME_MAX_BYTES} bytes")

    def _event(self, line: bytes, now: float) -> None:
        """One event of the watch, applied."""
        event = self._decoders.event(line)
        if isinstance(event, NotJSON):
            self._fault = (Cause.GARBAGE, f"an event that can't be read: {event.why}")
            return
        if isinstance(event, Failure):
            self._failed_by(event)
            return
        meta = event.meta
        if self._building is None and _is_before(meta.resource_version, self._version):
            self._fault = (
                Cause.WENT_BACK,
                f"resourceVersion {meta.resource_version} after {self._version}: was the cluster restored?",
            )
            self._version = ""
            return
        self._freshness.heard(now)
        if event.type == "BOOKMARK":
            self._bookmark(meta, now)
            return
        key = self.resource.key_of(meta)
        if event.type == "DELETED" or event.object is None:
            self._drop(key)  # an unreadable object is forgotten: whoever asks for it reads it live, and is told
            self.unreadable += event.type != "DELETED"
        else:
            self._put(key, event.object)
        if self._building is None:
            self._version = meta.resource_version

    def _bookmark(self, meta: Any, now: float) -> None:
        if self._building is None:
            self._version = meta.resource_version
        elif meta.annotations and meta.annotations.initial_events_end == "true":
            self._complete(meta.resource_version, now)
            self._freshness.watch_up(now, from_list=True)  # the same stream is the watch
        else:  # a server that ignores sendInitialEvents sends the collection, and never says that this was all
            self._fault = self._no_streaming()

    def _failed_by(self, failure: Failure) -> None:
        """An ERROR event: the server ends the watch with a Status."""
        self._fault = (_CAUSES.get(failure.code, Cause.ERROR), failure.sentence)
        self._retry_after = failure.retry_after_seconds
        if self._is_final(failure):
            self._version = ""

    def _page(self, now: float) -> None:
        """A page of a list is whole."""
        page = self._decoders.page(bytes(self._buffer))
        if isinstance(page, NotJSON):
            self._fail(Cause.GARBAGE, f"a list that can't be read: {page.why}", now)
            return
        for item in page.items:
            self._put(self.resource.key_of(item.metadata), item)
        self.unreadable += page.unreadable
        self._continue = page.continue_token
        if not self._continue:
            self._complete(page.resource_version, self._asked_at)

    def _build(self, now: float) -> None:
        """Begin a list. The first one is taken into the index as it comes; a later one when it is whole."""
        self._building, self._changed, self._continue, self._asked_at = {}, [], "", now
        if not self.synced and self.resource.index:
            self.index = self.resource.index()

    def _put(self, key: str, wire: Any) -> None:
        """Keep an object: the record that is shown where it says the same, so that a list makes no second."""
        record = self.resource.keep(wire)
        if self._building is None or not self.synced:
            objects = self.objects if self._building is None else self._building
            objects[key] = self.index.put(key, objects.get(key), record) if self.index else record
            return
        shown = self.objects.get(key)
        if (shown is not None and self.index.same(shown, record)) if self.index else shown == record:
            record = shown
        else:
            self._changed.append(key)
        self._building[key] = record

    def _drop(self, key: str) -> None:
        objects = self.objects if self._building is None else self._building
        if key in objects:
            old = objects.pop(key)
            if self.index and (self._building is None or not self.synced):
                self.index.drop(key, old)

    def _complete(self, version: str, at: float) -> None:
        """Show the list, which was whole at this time."""
        assert self._building is not None  # noqa: S101 - for the type checker: only a list is completed
        if self.index and self.synced:
            self._follow(self.index, self._building)
        self.objects, self._building, self._version = self._building, None, version
        self._changed = []
        self.synced, self.problem, self._page_objects = True, "", self.resource.page_objects
        self._freshness.listed(at)

    def _follow(self, index: Index, building: dict[str, Any]) -> None:
        """Take what a list has changed into the index, and leave what it has not: that is nearly all of it."""
        gone = self.objects.keys() - building.keys()
        for key in gone:
            index.drop(key, self.objects[key])
        for key in dict.fromkeys(self._changed):
            if key in building and building[key] is not self.objects.get(key):
                building[key] = index.put(key, self.objects.get(key), building[key])

    # What goes wrong.

    def _no_streaming(self) -> tuple[Cause, str]:
        self._streams = False
        return Cause.UNSUPPORTED, "no streaming list: listing by pages"

    def _refuse(self, doing: _Doing, now: float) -> None:
        """The answer was an HTTP error, with a Status as its body."""
        failure = self._decoders.failure(bytes(self._buffer), self._refused)
        cause = _CAUSES.get(failure.code, Cause.ERROR)
        if doing is _Doing.STREAM and failure.code in (400, 422):
            cause = self._no_streaming()[0]
        elif cause is Cause.NOT_INSTALLED and self.resource.prefix.startswith("/apis/"):
            self._build(now)
            self._complete("", now)
        elif self._is_final(failure):
            self._version, self._building = "", None
            if cause is Cause.EXPIRED and doing is _Doing.PAGE:
                # The list took longer than the server remembers: fewer, larger pages.
                self._page_objects = min(2 * self._page_objects, _PAGE_OBJECTS_MAX)
        self._retry_after = max(self._retry_after, failure.retry_after_seconds)
        self._fail(cause, failure.sentence, now)

    def _is_final(self, failure: Failure) -> bool:
        """Whether asking the same again will get the same answer, so that a new list is due."""
        if _CAUSES.get(failure.code) in _KEEPS_VERSION:
            return False
        return failure.too_new or 400 <= failure.code < 500  # noqa: PLR2004 - HTTP's own numbers

    def _fail(self, cause: Cause, sentence: str, now: float) -> None:
        self.causes[cause] += 1
        self.problem = f"{cause.value}: {sentence}"
        if cause is Cause.UNSUPPORTED:
            return
        backoff = min(_BACKOFF_SECONDS * 2.0**self._failures, _BACKOFF_MAX_SECONDS) * (1 + self._random()) / 2
        asked = min(self._retry_after, _RETRY_AFTER_MAX_SECONDS) * (1 + self._random() / 4)
        self._not_before = now + max(backoff, asked)
        self._failures = min(self._failures + 1, _FAILURES_MAX)


def _is_before(version: str, than: str) -> bool:
    """Whether a resourceVersion is older (KEP-5504: decimal numbers, of any length, that can be compared)."""
    return version.isdecimal() and than.isdecimal() and (len(version), version) < (len(than), than)
