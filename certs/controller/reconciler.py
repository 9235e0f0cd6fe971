"""The controller's loop: read, plan, write or wait, until it is canceled.

No decision depends on the memory of the process. It remembers only what it has logged, so that it does not log that
twice, and what its health and metrics show.
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

from certs.cluster import ApiError, Conflict
from certs.rotation import change, plan
from certs.rotation.bundle import Bundle
from certs.rotation.change import Change
from certs.rotation.plan import Create, Issue, Promote, Publish, RotationPolicy, Stage, Unstage, WaitUntil, Write
from certs.rotation.state import ClusterState
from certs.x509 import pki
from webhook.component_base.errors import UserError

READ_EVERY: Final = timedelta(seconds=60)  # by the wall clock, so that a machine that was suspended continues at once
_TOO_OLD: Final = timedelta(seconds=10)  # older data is read again, for example after the process was stopped
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 15.0
_UNWATCHED_SECONDS: Final = 5.0  # between two reads if the objects can't be watched
_RETRYING: Final = "can't read or write the objects, trying again"
_MANY_WRITES: Final = 20  # that repair something
_MANY_WRITES_IN: Final = timedelta(seconds=20)


class Objects(Protocol):
    """What the controller needs of a cluster: see `certs.cluster.ClusterObjects`."""

    async def read(self) -> ClusterState:
        """Return both objects as they are now."""
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
    succeeded_at: datetime | None = None  # when both objects were last found correct
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
        self._repairs: deque[datetime] = deque(maxlen=_MANY_WRITES)

    async def run(self) -> None:
        """Reconcile until this is canceled."""
        failures = 0
        while True:
            try:
                async with self._connect() as objects:  # again after each failure: credentials may have changed
                    while True:
                        await self.reconcile(objects)
                        failures = 0
            except (ApiError, UserError) as error:
                self._failed(str(error))
            await self._sleep(_pause_seconds(failures))
            failures += 1

    async def reconcile(self, objects: Objects) -> None:
        """Read both objects, then take the one step that is due, or wait for a change.

        Raises:
            ApiError: an object could not be read or written.
        """
        self.status.reconciled_at = self._clock()
        seen = await objects.read()
        now = self._clock()
        step = plan.next_step(seen, self._policy, now)
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
        await self._slow_down(step, now)

    async def _wait(self, objects: Objects, seen: ClusterState, at_most: timedelta) -> None:
        try:
            await objects.changed(seen, at_most)
        except ApiError as error:
            self._log_once("can't watch the objects, reading them every 5 seconds", logging.WARNING, error=str(error))
            await self._sleep(min(at_most.total_seconds(), _UNWATCHED_SECONDS))

    def _observe(self, seen: ClusterState, step: plan.RotationStep, now: datetime) -> None:
        found = pki.read_certificates(seen.secret.current.certificate) if seen.secret else []
        self.status.expires_at = found[0].not_valid_after_utc if found else None
        if self.status.problem and self.status.errors:
            self._note("both objects can be read again")
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
            case Create(reason):
                self._note("Secret created", reason=reason)
            case Issue(reason):
                self.status.rotations += 1
                self._note("certificate issued", reason=reason)
            case Stage(reason):
                self._note("next certificate staged", reason=reason)
            case Unstage(reason):
                self._note("next certificate removed", reason=reason)
            case Promote(reason):
                self.status.rotations += 1
                self._note("certificate replaced by the next one", reason=reason)
            case Publish(bundle):
                self._published(bundle)

    def _published(self, bundle: Bundle) -> None:
        for each in bundle.added:
            self._note("authority published", authority=each.authority, reason=each.because)
        for each in bundle.dropped:
            self._note("authority dropped", authority=each.authority, reason=each.because)
        for each in bundle.leaving:
            self._note("authority will be dropped", authority=each.authority, reason=each.because, until=each.until)
        if bundle.tidied:
            self._note("caBundle had text that is not a certificate, or a certificate twice: written again")
        if not (bundle.added or bundle.dropped or bundle.leaving or bundle.tidied):
            self._note("caBundle marks written", authorities=sorted(bundle.marks))

    def _log_once(self, message: str, level: int = logging.INFO, **fields: object) -> None:
        if self._logged.get(message) != fields:
            self._logged[message] = fields
            self._note(message, level, **fields)

    async def _slow_down(self, step: Write, now: datetime) -> None:
        """Pause after 20 repairs in 20 s, because another client undoes them. A completed rotation is not a repair."""
        if isinstance(step, Promote):
            self._repairs.clear()
        elif not isinstance(step, Publish) or step.bundle.is_repair:
            self._repairs.append(now)
        if len(self._repairs) == _MANY_WRITES and now - self._repairs[0] < _MANY_WRITES_IN:
            self._repairs.clear()
            self._note(
                "the objects change back after each write: does another client write the caBundle or the Secret?",
                logging.WARNING,
            )
            await self._sleep(_UNWATCHED_SECONDS)


def _pause_seconds(failures: int) -> float:
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * float(1 << min(failures, 10)))
    return longest * random.uniform(0.5, 1)  # noqa: S311 - so that two controllers do not try at the same time
