"""The controller's loop: read, plan, write or wait, until it is canceled.

It remembers since when it has seen what in the bundles. A process that starts knows nothing of that, and waits again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from certs import pki, plan
from certs.cluster import ClusterObjects, Conflict
from certs.plan import Issue, NewAuthority, Publish, RotationHistory, RotationPolicy, WaitUntil, Write
from certs.state import ClusterState
from webhook.component_base.client.transport import ApiError, Backoff
from webhook.component_base.errors import UserError

READ_EVERY: Final = timedelta(seconds=5)  # three GETs, fewer requests than a leader election makes
_TOO_OLD: Final = timedelta(seconds=10)  # older data is read again, for example after the process was stopped
_RETRYING: Final = "can't read or write the objects, trying again"


Connect = Callable[[], AbstractAsyncContextManager[ClusterObjects]]
Note = Callable[..., None]


class Clock(Struct, frozen=True):
    """`now` is the time of day, which somebody can set. `elapsed` has the seconds since a moment."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    elapsed: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


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

    def __init__(self, connect: Connect, policy: RotationPolicy, clock: Clock, note: Note) -> None:
        self.status = ControllerStatus()
        self._connect, self._policy, self._clock, self._note = connect, policy, clock, note
        self._logged: dict[str, object] = {}
        self._history = RotationHistory()
        # Since the objects were last found correct:
        self._written: set[type[Write]] = set()
        self._lost_write: type[Write] | None = None  # by a conflict, and since the last write

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
            await self._clock.sleep(backoff.wait(now()))

    async def reconcile(self, objects: ClusterObjects) -> None:
        """Read the objects, then take the one step that is due, or wait.

        Raises:
            ApiError: an object could not be read or written, or the same write conflicts again.
        """
        self.status.reconciled_at = self._clock.now()
        seen = await objects.read()
        now = self._clock.now()
        self._history.adjust(now, timedelta(seconds=self._clock.elapsed()))
        step = plan.next_step(seen, self._history, self._policy, now)
        self._observe(seen, step, now)
        if isinstance(step, WaitUntil):
            self._log_once("waiting", reason=step.reason, until=step.until)
            await self._clock.sleep(min(step.until - now, READ_EVERY).total_seconds())
            return
        if self._clock.now() - now > _TOO_OLD:
            return
        try:
            await objects.write(step, seen, self._policy, now)
        except Conflict:
            self.status.conflicts += 1
            if self._lost_write is type(step):
                raise
            self._lost_write = type(step)
            self._note("another client wrote first, reading again", step=type(step).__name__)
            return
        self._lost_write = None
        self._done(step)
        await self._slow_down(type(step))

    def _observe(self, seen: ClusterState, step: plan.RotationStep, now: datetime) -> None:
        found = pki.read_certificates(seen.served.pair.certificate)
        self.status.expires_at = found[0].not_valid_after_utc if found else None
        if self.status.problem and self.status.errors:
            self._note("the objects can be read again")
            self._logged.pop(_RETRYING, None)
        self.status.problem = None
        if isinstance(step, WaitUntil):
            self.status.succeeded_at = now
            self._written.clear()
            self._lost_write = None

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
            case Publish():
                self._published(step)

    def _published(self, written: Publish) -> None:
        for each in written.added:
            self._note("authority published", authority=pki.short_fingerprint(each))
        for each in written.dropped:
            self._note("authority dropped", authority=pki.short_fingerprint(each))
        if not written.added and not written.dropped:
            self._note("caBundle had text that is not a certificate, or a certificate twice: written again")

    def _log_once(self, message: str, level: int = logging.INFO, **fields: object) -> None:
        if self._logged.get(message) != fields:
            self._logged[message] = fields
            self._note(message, level, **fields)

    async def _slow_down(self, written: type[Write]) -> None:
        """Pause after a write that was made before, because another client undoes it. A rotation makes each once."""
        if written in self._written:
            self._log_once(
                "the objects change back after each write: does another client write the caBundle or a Secret?",
                logging.WARNING,
            )
            await self._clock.sleep(READ_EVERY.total_seconds())
        self._written.add(written)
