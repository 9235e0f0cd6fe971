"""The keeper's loop: read, plan, write or wait; for ever, and whatever goes wrong.

It remembers nothing that a decision depends on. What it does remember is what it has said, so as not to say it twice,
and what its health and metrics show.
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

from certs.controller.objects import ApiError, Conflict
from certs.rotation import change, plan
from certs.rotation.bundle import Bundle
from certs.rotation.change import Change
from certs.rotation.plan import Create, Issue, Policy, Promote, Publish, Stage, Unstage, Wait, Write
from certs.rotation.state import State
from certs.x509 import pki
from webhook.component_base.errors import UserError

LOOK_EVERY: Final = timedelta(seconds=60)  # by the wall clock: a machine that was suspended catches up
_TOO_OLD: Final = timedelta(seconds=10)  # what was read longer ago (a process that was stopped) is read again
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 15.0
_UNWATCHED_SECONDS: Final = 5.0  # between two looks where a watch can't be had
_IN_THE_WAY: Final = "something is in the way, trying again"
_MANY_WRITES: Final = 20  # that mend something
_MANY_WRITES_IN: Final = timedelta(seconds=20)


class Objects(Protocol):
    """What the keeper needs of a cluster: see cluster.Cluster."""

    async def read(self) -> State:
        """Both objects as they are now."""
        ...

    async def write(self, change: Change) -> None:
        """Make one change."""
        ...

    async def changed(self, seen: State, at_most: timedelta) -> None:
        """Wait until one of the two may be another than was seen."""
        ...


Connect = Callable[[], AbstractAsyncContextManager[Objects]]
Clock = Callable[[], datetime]
Note = Callable[..., None]
Sleep = Callable[[float], Awaitable[None]]


class Status(Struct):
    """What health and metrics show."""

    turned_at: datetime | None = None  # the loop went round
    succeeded_at: datetime | None = None  # both objects were read, and what had to be written was
    problem: str | None = "nothing was read yet"
    expires_at: datetime | None = None
    rotations: int = 0
    writes: int = 0
    conflicts: int = 0
    troubles: int = 0


class Controller:
    """One keeper. Several may run at once: whoever is faster wins, and the others look again."""

    def __init__(
        self, connect: Connect, policy: Policy, *, clock: Clock, note: Note, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.status = Status()
        self._sleep = sleep
        self._connect, self._policy, self._clock, self._note = connect, policy, clock, note
        self._said: dict[str, object] = {}
        self._mended: deque[datetime] = deque(maxlen=_MANY_WRITES)

    async def run(self) -> None:
        """Keep the certificate until this is cancelled."""
        failures = 0
        while True:
            try:
                async with self._connect() as objects:  # anew after each failure: credentials may have changed
                    while True:
                        await self.turn(objects)
                        failures = 0
            except (ApiError, UserError) as error:
                self._failed(str(error))
            await self._sleep(_pause_seconds(failures))
            failures += 1

    async def turn(self, objects: Objects) -> None:
        """Read both, then take the one step that is due, or wait for a change.

        Raises:
            Trouble: something could not be read, or not be written.
        """
        self.status.turned_at = self._clock()
        seen = await objects.read()
        now = self._clock()
        step = plan.next_step(seen, self._policy, now)
        self._learn(seen, step, now)
        if isinstance(step, Wait):
            self._say_once("waiting", reason=step.reason, until=step.until)
            await self._wait(objects, seen, min(step.until - now, LOOK_EVERY))
            return
        written = change.change(step, seen, self._policy, now)
        if self._clock() - now > _TOO_OLD:
            return
        try:
            await objects.write(written)
        except Conflict:
            self.status.conflicts += 1
            self._note("somebody else wrote first, looking again", step=type(step).__name__)
            return
        self._done(step)
        await self._not_too_fast(step, now)

    async def _wait(self, objects: Objects, seen: State, at_most: timedelta) -> None:
        try:
            await objects.changed(seen, at_most)
        except ApiError as error:
            self._say_once("can't watch, looking every few seconds", logging.WARNING, error=str(error))
            await self._sleep(min(at_most.total_seconds(), _UNWATCHED_SECONDS))

    def _learn(self, seen: State, step: plan.Step, now: datetime) -> None:
        certificates = pki.certificates(seen.secret.current.certificate) if seen.secret else []
        self.status.expires_at = certificates[0].not_valid_after_utc if certificates else None
        if self.status.problem and self.status.troubles:
            self._note("both objects can be read again")
            self._said.pop(_IN_THE_WAY, None)
        self.status.problem = None
        if isinstance(step, Wait):
            self.status.succeeded_at = now

    def _failed(self, sentence: str) -> None:
        self.status.troubles += 1
        self.status.problem = sentence
        self._say_once(_IN_THE_WAY, logging.ERROR, error=sentence)

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
                self._note("next certificate taken away", reason=reason)
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
            self._note("caBundle held what is no certificate, or one twice: written anew")
        if not (bundle.added or bundle.dropped or bundle.leaving or bundle.tidied):
            self._note("caBundle marked", authorities=sorted(bundle.marks))

    def _say_once(self, message: str, level: int = logging.INFO, **fields: object) -> None:
        if self._said.get(message) != fields:
            self._said[message] = fields
            self._note(message, level, **fields)

    async def _not_too_fast(self, step: Write, now: datetime) -> None:
        """Where somebody undoes what we write, neither wins by haste. A rotation that comes to its end is not such."""
        if isinstance(step, Promote):
            self._mended.clear()
        elif not isinstance(step, Publish) or step.bundle.mends:
            self._mended.append(now)
        if len(self._mended) == _MANY_WRITES and now - self._mended[0] < _MANY_WRITES_IN:
            self._mended.clear()
            self._note("what is written does not last: does somebody else write caBundle or Secret?", logging.WARNING)
            await self._sleep(_UNWATCHED_SECONDS)


def _pause_seconds(failures: int) -> float:
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * float(1 << min(failures, 10)))
    return longest * random.uniform(0.5, 1)  # noqa: S311 - only so that two keepers do not try at the same moment
