"""Events: writes what admissions were decided as onto the VirtualMachineInstances, for `kubectl describe vmi`.

An admission is heard without a wait and without a call: it is put on a queue, and left out where that is full. One task
takes from it, as fast as the API server may be asked. What can't be written in time is dropped: it is counted, and all
of it is in the log anyway. Invariant: nothing that an API server does slows an admission down.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from webhook.core.admit import Answer, Entry
from webhook.core.observe import events
from webhook.core.observe.events import Event, Outcome
from webhook.kube.client.api import Reply
from webhook.kube.client.errors import ApiError
from webhook.kube.client.wire import Decoders
from webhook.kube.events.rate_limit import RateLimiter, TTLCache
from webhook.telemetry.log import failure
from webhook.telemetry.record import LOGGER

COMPONENT: Final = "kubevirt-coschedule"
STOP_SECONDS: Final = 2.0  # of the 5 s that Kubernetes leaves after --drain-seconds and the calls in flight
_INSTANCE_CHARS: Final = 128  # kubernetes pkg/apis/core/validation/events.go, ReportingInstanceLengthLimit
_NAME_CHARS: Final = 232  # 253 less a dot and 20 digits
_CONFLICT: Final = 409  # the Event is there: an answer was lost
_BUSY: Final = 429
_SERVER_ERROR: Final = 500
_CREATED: Final = range(200, 300)
_decoders: Final = Decoders(msgspec.Raw)


class Limits(Struct, frozen=True, kw_only=True):
    """What Events may take of memory, of time, and of the API server."""

    queued: int = 512  # 10 KB each at most: a storm of starts, and 5 MB
    per_second: float = 10.0
    burst: int = 50
    write_seconds: float = 5.0
    tries: int = 3
    repeat_seconds: float = 600.0  # a CREATE that is refused later on is tried again by KubeVirt for as long
    remembered: int = 4096
    warn_seconds: float = 60.0  # between two lines of the log that say the same


DEFAULT_LIMITS: Final = Limits()


class Writer(Protocol):
    """The way to the API server (client.Api)."""

    async def post(self, path: str, new: Mapping[str, Any], *, seconds: float) -> Reply:
        """POST a new object; raises Trouble."""
        ...


class _Heard(NamedTuple):
    answer: Answer
    entry: Entry
    at: float


class EventRecorder:
    """The Events of one replica. `counts` is what became of them."""

    def __init__(
        self,
        api: Writer,
        *,
        limits: Limits = DEFAULT_LIMITS,
        chance: Callable[[], float] = random.random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.counts: Counter[Outcome] = Counter(dict.fromkeys(Outcome, 0))
        self._api = api
        self._limits = limits
        self._wall = wall
        self._now = asyncio.get_running_loop().time
        self._queue: asyncio.Queue[_Heard] = asyncio.Queue(limits.queued)
        self._pace = RateLimiter(limits.per_second, limits.burst, random=chance)
        self._written = TTLCache(limits.repeat_seconds, limits.remembered)
        self._waiting = 0
        self._warned_at: float | None = None
        self._lost_before = 0

    def hear(self, answer: Answer, entry: Entry) -> None:
        """An admission was answered. Nothing is waited for, and nothing goes wrong here."""
        if not events.may_have_events(answer):
            return
        if self._queue.full():
            self.counts[Outcome.OVERFLOWED] += 1
            return
        self._queue.put_nowait(_Heard(answer, entry, self._wall()))
        self._waiting += 1

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            heard = await self._queue.get()
            try:
                await self._tell(heard)
            except Exception as error:  # noqa: BLE001 - the task supervisor: one that can't be told must not end all others
                LOGGER.error("event not told", extra={"fields": {"uid": heard.answer.request.uid, **failure(error)}})
            finally:
                self._queue.task_done()
                self._waiting -= 1
            await asyncio.sleep(0)  # a queue that is full is taken from without a wait, and calls want an answer

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Let what is heard already be written, for so long; the rest is dropped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._queue.join()
        if left := self._waiting:
            self.counts[Outcome.STOPPED] += left
            LOGGER.warning("events dropped", extra={"fields": {"because": "shutting down", "dropped": left}})

    async def _tell(self, heard: _Heard) -> None:
        for notice in events.events_for(heard.answer, heard.entry):
            outcome = await self._told(notice, heard.at)
            self.counts[outcome] += 1
            told = {"uid": heard.answer.request.uid, "outcome": outcome.value, "reason": notice.reason}
            LOGGER.debug("event", extra={"fields": {**told, "namespace": notice.namespace, "vmi": notice.name}})

    async def _told(self, notice: Event, at: float) -> Outcome:
        key = (notice.uid, notice.reason, notice.message)
        if self._written.has(key, self._now()):
            return Outcome.REPEATED
        outcome = await self._write(event(notice, at))
        if outcome is Outcome.WRITTEN:
            self._written.add(key, self._now())
        return outcome

    async def _write(self, new: Mapping[str, Any]) -> Outcome:
        path = f"/api/v1/namespaces/{new['metadata']['namespace']}/events"
        for _ in range(self._limits.tries):
            await asyncio.sleep(self._pace.wait(self._now()))
            try:
                reply = await self._api.post(path, new, seconds=self._limits.write_seconds)
            except ApiError as problem:
                self._failed(str(problem))
                continue
            if reply.status in _CREATED or reply.status == _CONFLICT:
                self._went_well()
                return Outcome.WRITTEN
            self._failed(_decoders.failure(reply.body, reply.status).sentence, reply.retry_after)
            if reply.status != _BUSY and reply.status < _SERVER_ERROR:
                return Outcome.REFUSED
        return Outcome.FAILED

    def _failed(self, because: str, retry_after: str | None = None) -> None:
        now = self._now()
        self._pace.failed(now, float(retry_after) if retry_after and retry_after.isdecimal() else 0.0)
        if self._warned_at is None or now >= self._warned_at + self._limits.warn_seconds:
            self._warned_at = now
            LOGGER.warning("events not written", extra={"fields": {"because": because, "lost": self._lost()}})

    def _went_well(self) -> None:
        self._pace.went_well()
        if self._warned_at is not None and self._now() >= self._warned_at + self._limits.warn_seconds:
            self._warned_at = None
            LOGGER.info("events written again", extra={"fields": {"lost": self._lost()}})

    def _lost(self) -> int:
        """How many were dropped since this was told last."""
        dropped = (Outcome.OVERFLOWED, Outcome.FAILED, Outcome.REFUSED)
        lost = sum(self.counts[each] for each in dropped)
        before, self._lost_before = self._lost_before, lost
        return lost - before


def event(notice: Event, at: float) -> dict[str, Any]:
    """The v1 Event, with a name of its own: one that is sent twice is there once.

    Names are in the order of time: kubectl sorts Events by the second, and those of one second stay as they are listed.
    """
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = f"{notice.name[:_NAME_CHARS].rstrip('-.')}.{int(at * 1e9):016x}{secrets.token_hex(2)}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": notice.namespace},
        "involvedObject": {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "namespace": notice.namespace,
            "name": notice.name,
            "uid": notice.uid,
        },
        "type": "Warning" if notice.warning else "Normal",
        "reason": notice.reason,
        "message": notice.message,
        "source": {"component": COMPONENT},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
        "reportingComponent": COMPONENT,
        "reportingInstance": socket.gethostname()[:_INSTANCE_CHARS],
    }
