"""ListWatch: a cache of one collection that follows the API server, as a state machine without I/O, clock or chance.

The driver (webhook.kube.informer.reflector) asks `next` for the next step, sends the request, and reports the answer:
`opened`, `feed` for each piece of the body, `ended`. webhook.kube.informer says what the cache promises its readers.

Invariant: fed byte by byte or whole, an answer leads to the same objects. No answer makes this module raise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Any, Final

from webhook.component_base.client.transport import Backoff, Failure, read_failure, retry_after_seconds
from webhook.kube.informer import connection
from webhook.kube.informer.connection import Cause, Fault, Freshness, Request, RequestMode, Wait
from webhook.kube.informer.store import Resource, Store
from webhook.kube.wire import Decoders, Framing, NotJSON, is_before

HEALTHY_SECONDS: Final = 2.0  # a watch that was up for this time ends a run of failures
_PAGE_OBJECTS_MAX: Final = 8_000
_OK: Final = 200
_IN_EVERY_CLUSTER: Final = ("/api/v1", "/apis/storage.k8s.io/")  # a server without these kinds is no API server
_NO_STREAMING: Final = Fault(Cause.UNSUPPORTED, "no streaming list: listing by pages")


class ListWatch(Store):
    """The cache of one collection, and the state of its list or watch. All times are seconds of the driver's clock.

    Attributes:
        problem: why the cache is not up to date, as a sentence; empty if it is.
        causes: how many lists and watches ended too early, by cause.
        unreadable: how many objects were left out so far because they could not be decoded.
        installed: False while the API server says that it has no such kind.
    """

    def __init__(self, resource: Resource, *, random: Callable[[], float], streams: bool = True) -> None:
        """Take `random` for jitter: numbers from 0 to 1. Without `streams` the collection is listed by pages."""
        super().__init__(resource)
        self.problem = "not listed yet"
        self.causes: Counter[Cause] = Counter()
        self.unreadable, self.installed = 0, True
        self._random = random
        self._backoff = Backoff(random)
        self._decoders = Decoders(resource.wire, resource.large)
        self._freshness, self._framing = Freshness(), Framing()
        self._streams = streams
        self._version = ""  # the resourceVersion of `objects`; empty: list first
        self._page_objects = resource.page_objects
        self._continue_token = ""
        self._listed_from = 0.0  # when the list in progress was requested
        self._mode = RequestMode.NOTHING  # this field and the next ones belong to the request that is under way
        self._opened_at = 0.0
        self._refused = 0  # the HTTP status of an error
        self._retry_after = 0.0
        self._fault: Fault | None = None

    # For the readers.

    def age(self, now: float) -> float:
        """Return the seconds since `objects` was last confirmed to be what the API server has; 0 if the watch is up."""
        return self._freshness.age(now)

    def fresh(self, now: float) -> bool:
        """Return whether `objects` may be taken for what the API server has."""
        return self.synced and self._freshness.fresh(now)

    def heard(self, now: float) -> float:
        """Return the seconds since the API server last sent an event, a bookmark or a list, or began a watch."""
        return now - self._freshness.heard_at

    # For the driver.

    def next(self, now: float) -> Request | Wait:
        """Return the next step: a request to send, or a time to wait."""
        seconds = self._backoff.wait(now)
        if seconds > 0:
            return Wait(seconds)
        self._refused, self._fault, self._retry_after = 0, None, 0.0
        self._opened_at = inf  # until the server answers: the time without an answer is not `was_up`
        self._framing.clear()
        if self._version:
            self._mode = RequestMode.WATCH
            return connection.watch(self.resource, self._random, self._version)
        if self._streams:
            self._mode = RequestMode.STREAM
            self._begin_list(now)
            return connection.streaming_list(self.resource, self._random)
        self._mode = RequestMode.PAGE
        if self.listing is None:
            self._begin_list(now)
        return connection.page(self.resource, self._page_objects, self._continue_token)

    def opened(self, status: int, retry_after: str | None, now: float) -> None:
        """Take in the HTTP status of the answer, and its header Retry-After."""
        self._opened_at = now
        if status != _OK:
            self._refused = status
            self._retry_after = retry_after_seconds(retry_after)
        elif self._mode is RequestMode.WATCH:
            self._freshness.watch_up(now)

    def settle(self, now: float) -> None:
        """Clear `problem` if the watch is still up. To be called SETTLE_SECONDS after `opened`."""
        if self._freshness.is_watched(now):
            self.problem = ""

    def feed(self, chunk: bytes, now: float) -> bool:
        """Take in a piece of the body. Return False if no more of the answer is wanted."""
        if self._refused:
            self._framing.add_error(chunk)
        elif self._mode is RequestMode.PAGE:
            if too_long := self._framing.add_page(chunk):
                self._fault = Fault(Cause.GARBAGE, too_long)
                self._page_objects = max(1, self._page_objects // 2)  # anybody may create objects of 1.5 MB
        elif self._fault is None:
            self._fault = self._feed_watch(chunk, now)
        return self._fault is None and self._mode is not RequestMode.NOTHING

    def ended(self, now: float, error: str = "", *, silent: bool = False) -> None:
        """Take in the end of the answer: in order, or with `error`; `silent` if no byte came for too long."""
        if self._mode is RequestMode.NOTHING and not error:
            return  # a streaming list is whole, and a watch of its own follows
        mode, self._mode = self._mode, RequestMode.NOTHING
        # A connection that broke may have been dead since the last event. A watch that ended with an ERROR event may
        # have missed events since then. A watch that ended in order was alive until now.
        self._freshness.watch_down(self._freshness.heard_at if error or self._fault else now)
        was_up = now - self._opened_at >= HEALTHY_SECONDS
        if was_up and mode is not RequestMode.PAGE and self.listing is None and not self._refused:
            self._backoff.succeeded()
        if self._fault:
            self._fail(*self._fault, now)
        elif self._refused:
            self._refuse(mode, now)
        elif error:
            self._fail(Cause.SILENT if silent else Cause.CUT, error, now)
        elif mode is RequestMode.PAGE:
            self._end_page(now)
        elif self._framing.body or mode is RequestMode.STREAM:
            self._fail(Cause.CUT, "the answer ended before its end", now)
        elif not was_up:
            self._fail(Cause.CUT, "the watch ended as soon as it had begun", now)
        if mode is RequestMode.STREAM:
            self.listing = None

    # Answers and failures.

    def _feed_watch(self, chunk: bytes, now: float) -> Fault | None:
        for line in self._framing.add_lines(chunk):
            too_long = self._framing.excess(line)
            fault = Fault(Cause.GARBAGE, too_long) if too_long else self._apply(line, now)
            if fault or self._mode is RequestMode.NOTHING:
                return fault
        too_long = self._framing.excess()
        return Fault(Cause.GARBAGE, too_long) if too_long else None

    def _apply(self, line: bytes, now: float) -> Fault | None:
        """Apply one event of a watch. Return why the watch must end; None if it goes on."""
        event = self._decoders.event(line)
        if isinstance(event, NotJSON):
            return Fault(Cause.GARBAGE, f"an event that can't be read: {event.why}")
        if isinstance(event, Failure):
            return self._error_event(event)
        version = event.meta.resource_version
        if self.listing is None and is_before(version, self._version):
            before, self._version = self._version, ""
            return Fault(Cause.WENT_BACK, f"resourceVersion {version} after {before}: was the cluster restored?")
        self._freshness.heard(now)
        if event.type == "BOOKMARK":
            return self._bookmark(event.meta)
        key = self.resource.key_of(event.meta)
        if event.type == "DELETED" or event.object is None:
            self.drop(key)  # of an unreadable object, too: a call that needs it reads it live, and reports the problem
            self.unreadable += event.type != "DELETED"
        else:
            self.put(key, event.object)
        if self.listing is None:
            self._version = version
        return None

    def _bookmark(self, meta: Any) -> Fault | None:
        if self.listing is None:
            self._version = meta.resource_version
        elif meta.ends_list:
            self._end_list(meta.resource_version)
            self._mode = RequestMode.NOTHING  # no more of this answer is wanted
        else:  # an API server that ignores sendInitialEvents sends all objects, and never the end of the list
            self._streams = False
            return _NO_STREAMING
        return None

    def _error_event(self, failure: Failure) -> Fault:
        """Take in an ERROR event: the server ends the watch with a Status."""
        self._retry_after = failure.retry_after_seconds
        if connection.needs_list(failure):
            self._version = ""
        return Fault(connection.cause_of(failure), failure.sentence)

    def _end_page(self, now: float) -> None:
        page = self._decoders.page(self._framing.body)
        if isinstance(page, NotJSON):
            self._fail(Cause.GARBAGE, f"a list that can't be read: {page.why}", now)
            return
        for item in page.items:
            self.put(self.resource.key_of(item.metadata), item)
        self.unreadable += page.unreadable
        self._continue_token = page.continue_token
        self._page_objects = max(self._page_objects, self.resource.page_objects)
        if not page.continue_token:
            self._end_list(page.resource_version)

    def _begin_list(self, now: float) -> None:
        self.begin_list()
        self._continue_token, self._listed_from = "", now

    def _end_list(self, version: str) -> None:
        """Show the list, which is whole: the state of the time at which it was requested, however long it took.

        Upstream: the pages of a list have the resourceVersion of the first one. A streaming list has the objects of its
        beginning, and a bookmark that follows them (apiserver storage/cacher/cache_watcher.go, processInterval).
        """
        self.complete_list()
        self._version, self.problem, self._page_objects = version, "", self.resource.page_objects
        self._freshness.listed(self._listed_from)
        self.installed = True

    def _refuse(self, mode: RequestMode, now: float) -> None:
        """Take in an HTTP error, with a Status as its body."""
        cause = connection.cause_of(failure := read_failure(self._framing.body, self._refused))
        if mode is RequestMode.STREAM and failure.code in (400, 422):
            self._streams, cause = False, Cause.UNSUPPORTED
        elif cause is Cause.NOT_INSTALLED and not self.resource.prefix.startswith(_IN_EVERY_CLUSTER):
            self._begin_list(now)
            self._end_list("")
            self.installed = False
        elif connection.needs_list(failure):
            self._version, self.listing = "", None
            if cause is Cause.EXPIRED and mode is RequestMode.PAGE:
                # The list took longer than the server keeps its resourceVersion: ask for fewer, larger pages.
                self._page_objects = min(2 * self._page_objects, _PAGE_OBJECTS_MAX)
        self._retry_after = max(self._retry_after, failure.retry_after_seconds)
        self._fail(cause, failure.sentence, now)

    def _fail(self, cause: Cause, sentence: str, now: float) -> None:
        self.causes[cause] += 1
        self.problem = f"{cause.value}: {sentence}"
        if cause is not Cause.UNSUPPORTED:
            self._backoff.failed(now, self._retry_after)
