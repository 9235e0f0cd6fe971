"""EventRecorder: writes the decisions of admissions as Events on the VirtualMachineInstances (`kubectl describe vmi`).
Their content comes from `webhook.core.observe`. ReuniteMessages reads the Events of `reunite`.

`record` puts the Events of an answer on a queue, without a wait and without a request. If the queue is full, it drops
them. One task takes Events from the queue and writes them, within a rate limit. Events that the API server does not
take are dropped and counted, and not sent again; the log has every decision. Invariants: no API server can slow an
admission down; each Event is counted once, by its outcome.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from math import inf
from typing import Any, Final, NamedTuple

from msgspec import Struct

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.component_base.log_line import failure
from webhook.core.admit import Answer, Entry
from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.meta import utc_text
from webhook.core.observe import events
from webhook.core.observe.events import Event, Messages, Outcome, ReuniteEvent, latest
from webhook.kube import reader
from webhook.kube.wire import Decoders
from webhook.telemetry.record import LOGGER

COMPONENT: Final = "kubevirt-coschedule"
STOP_SECONDS: Final = 2.0  # of the 5 s that Kubernetes leaves after --drain-seconds and the calls in flight
_REPORTER_CHARS: Final = 128  # kubernetes pkg/apis/core/validation/events.go: ReportingInstanceLengthLimit
_NAME_CHARS: Final = 232  # 253 minus a dot and 20 digits
_BUSY: Final = 429
_SERVER_ERROR: Final = 500
_CREATED: Final = range(200, 300)


class EventLimits(Struct, frozen=True, kw_only=True):
    """The limits of memory, time and requests for Events."""

    queued: int = 512  # Events of 2 KB: 1 MB
    per_second: float = 10.0
    burst: int = 50
    write_seconds: float = 5.0
    repeat_seconds: float = 600.0  # KubeVirt repeats a CREATE that a later webhook refuses for this time
    remembered: int = 4096
    warn_seconds: float = 60.0  # between two log lines with the same message


DEFAULT_EVENT_LIMITS: Final = EventLimits()


class _Queued(NamedTuple):
    """One Event of an answer. The answer is not stored: it has the whole pod. `uid`: of the AdmissionReview."""

    event: Event
    uid: str
    at: float


class EventRecorder:
    """The Events of one replica. `counts` has the number of Events by outcome."""

    def __init__(
        self,
        api: Api,
        *,
        limits: EventLimits = DEFAULT_EVENT_LIMITS,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.counts: Counter[Outcome] = Counter(dict.fromkeys(Outcome, 0))
        self._api = api
        self._limits = limits
        self._wall = wall
        self._now = asyncio.get_running_loop().time
        self._queue: asyncio.Queue[_Queued] = asyncio.Queue(limits.queued)
        self._due = -inf  # the time of the last request, if requests were spread evenly
        self._last: dict[tuple[str, str], tuple[str, float]] = {}  # (uid, reason) -> message and time, oldest first
        self._waiting = 0
        self._warned_at = -inf

    def record(self, answer: Answer, entry: Entry) -> None:
        """Queue the Events of an answered admission. This neither waits nor raises."""
        if not events.may_have_events(answer):
            return
        try:
            found = events.events_for(answer, entry)
        except Exception as error:  # noqa: BLE001 - an answer without Events is still the answer
            _log_fault(answer.request.uid, error)
            return
        for event in found:
            if self._queue.full():
                self.counts[Outcome.OVERFLOWED] += 1
            else:
                self._queue.put_nowait(_Queued(event, answer.request.uid, self._wall()))
                self._waiting += 1

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            queued = await self._queue.get()
            try:
                await self._write_queued(queued)
            except Exception as error:  # noqa: BLE001 - the task supervisor: an Event must not end the task
                _log_fault(queued.uid, error)
            finally:
                self._queue.task_done()
                self._waiting -= 1
            await asyncio.sleep(0)  # `get` does not wait if the queue is not empty: let admissions run

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Wait until the queued Events are written, for `seconds` at most. Drop the rest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._queue.join()
        if left := self._waiting:
            self.counts[Outcome.STOPPED] += left
            LOGGER.warning("events dropped", extra={"fields": {"because": "shutting down", "dropped": left}})

    async def _write_queued(self, queued: _Queued) -> None:
        event = queued.event
        outcome = await self._write(event, queued.at)
        self.counts[outcome] += 1
        fields = {"uid": queued.uid, "outcome": outcome.value, "reason": event.reason}
        LOGGER.debug("event", extra={"fields": {**fields, "namespace": event.namespace, "vmi": event.name}})

    async def _write(self, event: Event, at: float) -> Outcome:
        key = (event.uid, event.reason)
        message, written_at = self._last.get(key, ("", -inf))
        if message == event.message and self._now() < written_at + self._limits.repeat_seconds:
            return Outcome.REPEATED
        outcome = await self._post(v1_event(event, at))
        if outcome is Outcome.WRITTEN:
            self._last.pop(key, None)
            self._last[key] = (event.message, self._now())
            if len(self._last) > self._limits.remembered:
                del self._last[next(iter(self._last))]
        return outcome

    async def _post(self, new: Mapping[str, Any]) -> Outcome:
        path, outcome = f"/api/v1/namespaces/{new['metadata']['namespace']}/events", Outcome.FAILED
        await asyncio.sleep(self._wait_seconds())
        try:
            reply = await self._api.post(path, new, seconds=self._limits.write_seconds)
        except ApiError as problem:
            because = str(problem)
        else:
            if reply.status in _CREATED:
                return Outcome.WRITTEN
            because = reply.failure.sentence
            if reply.status != _BUSY and reply.status < _SERVER_ERROR:
                outcome = Outcome.REFUSED
        if self._now() >= self._warned_at + self._limits.warn_seconds:
            self._warned_at = self._now()
            LOGGER.warning("events not written", extra={"fields": {"because": because}})
        return outcome

    def _wait_seconds(self) -> float:
        """Return the seconds until the next request: after `burst` at once `per_second`."""
        now, between = self._now(), 1 / self._limits.per_second
        self._due = max(self._due + between, now - (self._limits.burst - 1) * between)
        return max(0.0, self._due - now)


def _log_fault(uid: str, error: Exception) -> None:
    LOGGER.error("event could not be written", extra={"fields": {"uid": uid, **failure(error)}})


def v1_event(event: Event, at: float) -> dict[str, Any]:
    """Return the v1 Event of an event at the time `at` (seconds since 1970), as JSON.

    Its name is unique. Names are in the order of time: kubectl sorts Events by the second, and shows the Events of one
    second in the order of the list.
    """
    when = utc_text(at)
    name = f"{event.name[:_NAME_CHARS].rstrip('-.')}.{int(at * 1e9):016x}{secrets.token_hex(2)}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.namespace},
        "involvedObject": {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "namespace": event.namespace,
            "name": event.name,
            "uid": event.uid,
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": event.message,
        "source": {"component": COMPONENT},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
        "reportingComponent": COMPONENT,
        "reportingInstance": socket.gethostname()[:_REPORTER_CHARS],
    }


_FIELDS: Final = f"involvedObject.kind={VMI_KIND}"
_AGAIN_SECONDS: Final = 30.0  # `reunite` runs each ten minutes
_REFUSED_SECONDS: Final = 600.0  # the account may not list Events, because the component `reunite` is not installed


async def read_messages(api: Api, namespace: str) -> Messages:
    """Return the last message of `reunite` about each VM. `namespace` is empty for all namespaces.

    Raises:
        ApiError: the Events can't be read.
    """
    within = f"{reader.within(namespace)}/" if namespace else ""
    return latest(await reader.get_all(api, f"/api/v1/{within}events", Decoders(ReuniteEvent), fields=_FIELDS))


class ReuniteMessages:
    """The last message of `reunite` about each VM, for a page: nothing is read while nobody asks."""

    def __init__(self, read: Callable[[], Awaitable[Messages]]) -> None:
        self._read = read
        self._messages: Messages = {}
        self._next = 0.0
        self._reading: asyncio.Task[None] | None = None

    def __call__(self) -> Messages:
        """Return what the last read found. Start a new read if the last one is 30 s old or older. Never waits."""
        now = asyncio.get_running_loop().time()
        if self._reading is None and now >= self._next:
            self._reading = asyncio.create_task(self._refresh())
        return self._messages

    async def _refresh(self) -> None:
        wait_seconds = _AGAIN_SECONDS
        try:
            self._messages = await self._read()
        except ApiError as problem:  # else the messages stay: each has its time
            if problem.forbidden:
                self._messages, wait_seconds = {}, _REFUSED_SECONDS
        finally:
            self._reading = None
        self._next = asyncio.get_running_loop().time() + wait_seconds
