"""The controller's loop: read, plan, write or wait, until it is canceled.

It remembers since when it has seen what in the bundles. A process that starts knows nothing of that, and waits again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from certs.cluster import Conflict
from certs.rotation import change, plan
from certs.rotation.bundle import Bundle, BundleHistory
from certs.rotation.change import Change
from certs.rotation.plan import Issue, NewAuthority, Publish, RotationPolicy, WaitUntil, Write
from certs.rotation.state import ClusterState
from certs.x509 import pki
from webhook.component_base.client.backoff import Backoff
from webhook.component_base.client.errors import ApiError
from webhook.component_base.errors import UserError

READ_EVERY: Final = timedelta(seconds=60)  # by the wall clock, so that a machine that was suspended continues at once
_TOO_OLD: Final = timedelta(seconds=10)  # older data is read again, for example after the process was stopped
_UNWATCHED_SECONDS: Final = 5.0  # between two reads if the objects can't be watched
_RETRYING: Final = "can't read or write the objects, trying again"
_MANY_WRITES: Final = 20  # a new authority takes four
_MANY_WRITES_IN: Final = timedelta(seconds=20)


class Objects(Protocol):
    """What the controller needs of a cluster: see `certs.cluster.ClusterObjects`."""

    async def read(self) -> ClusterState:
        """Return the objects as they are now."""
        ...

    async def write(self, change: Change) -> None:
        """Make one change."""
        ...

    async def changed(self, seen: ClusterState, at_most: timedelta) -> None:
        """Wait until one of the objects may differ from `seen`, or until `at_most` is over."""
        ...


Connect = Callable[[], AbstractAsyncContextManager[Objects]]
Clock = Callable[[], datetime]
Note = Callable[..., None]
Sleep = Callable[[float], Awaitable[None]]


class ControllerStatus(Struct):
    """The values that health and metrics show."""

    reconciled_at: datetime | None = None  # when the last attempt began
    succeeded_at: datetime | None = None  # when the objects were last found correct
    problem: str | None = "the objects were not read yet"
    expires_at: datetime | None = None
    rotations: int = 0
    writes: int = 0
    conflicts: int = 0
    errors: int = 0


class Controller:
    """The certificate controller. If several run, the first write wins, and the others read again."""

    def __init__(
        self, connect: Connect, policy: RotationPolicy, *, clock: Clock, note: Note, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.status = ControllerStatus()
        self._sleep = sleep
        self._connect, self._policy, self._clock, self._note = connect, policy, clock, note
        self._logged: dict[str, object] = {}
        self._history = BundleHistory()
        self._writes: deque[datetime] = deque(maxlen=_MANY_WRITES)

    async def run(self) -> None:
        """Reconcile until this is canceled."""
        backoff, now = Backoff(random.random), asyncio.get_running_loop().time
        while True:
            try:
                async with self._connect() as objects:  # again after each failure: credentials may have changed
                    while True:
                        await self.reconcile(objects)
                        backoff.succeeded()
            except (ApiError, UserError) as error:
                self._failed(str(error))
            backoff.failed(now(), 0)
            await self._sleep(backoff.wait(now()))

    async def reconcile(self, objects: Objects) -> None:
        """Read the objects, then take the one step that is due, or wait for a change.

        Raises:
            ApiError: an object could not be read or written.
        """
        self.status.reconciled_at = self._clock()
        seen = await objects.read()
        now = self._clock()
        step = plan.next_step(seen, self._history, self._policy, now)
        self._observe(seen, step, now)
        if isinstance(step, WaitUntil):
            self._log_once("waiting", reason=step.reason, until=step.until)
            await self._wait(objects, seen, min(step.until - now, READ_EVERY))
            return
        written = change.change_for(step, seen, self._policy, now)
        if self._clock() - now > _TOO_OLD:
            return
        try:
            await objects.write(written)
        except Conflict:
            self.status.conflicts += 1
            self._note("another client wrote first, reading again", step=type(step).__name__)
            return
        self._done(step)
        await self._slow_down(now)

    async def _wait(self, objects: Objects, seen: ClusterState, at_most: timedelta) -> None:
        try:
            await objects.changed(seen, at_most)
        except ApiError as error:
            self._log_once("can't watch the objects, reading them every 5 seconds", logging.WARNING, error=str(error))
            await self._sleep(min(at_most.total_seconds(), _UNWATCHED_SECONDS))

    def _observe(self, seen: ClusterState, step: plan.RotationStep, now: datetime) -> None:
        found = pki.read_certificates(seen.served.pair.certificate)
        self.status.expires_at = found[0].not_valid_after_utc if found else None
        if self.status.problem and self.status.errors:
            self._note("the objects can be read again")
            self._logged.pop(_RETRYING, None)
        self.status.problem = None
        if isinstance(step, WaitUntil):
            self.status.succeeded_at = now

    def _failed(self, sentence: str) -> None:
        self.status.errors += 1
        self.status.problem = sentence
        self._log_once(_RETRYING, logging.ERROR, error=sentence)

    def _done(self, step: Write) -> None:
        self.status.writes += 1
        match step:
            case NewAuthority(reason):
                self._note("authority made", reason=reason)
            case Issue(reason):
                self.status.rotations += 1
                self._note("certificate issued", reason=reason)
            case Publish(bundle):
                self._published(bundle)

    def _published(self, bundle: Bundle) -> None:
        for each in bundle.added:
            self._note("authority published", authority=each.authority, reason=each.because)
        for each in bundle.dropped:
            self._note("authority dropped", authority=each.authority, reason=each.because)
        if not bundle.added and not bundle.dropped:
            self._note("caBundle had text that is not a certificate, or a certificate twice: written again")

    def _log_once(self, message: str, level: int = logging.INFO, **fields: object) -> None:
        if self._logged.get(message) != fields:
            self._logged[message] = fields
            self._note(message, level, **fields)

    async def _slow_down(self, now: datetime) -> None:
        """Pause after 20 writes in 20 s, because another client undoes them."""
        self._writes.append(now)
        if len(self._writes) == _MANY_WRITES and now - self._writes[0] < _MANY_WRITES_IN:
            self._writes.clear()
            self._note(
                "the objects change back after each write: does another client write the caBundle or a Secret?",
                logging.WARNING,
            )
            await self._sleep(_UNWATCHED_SECONDS)
