"""Fleet: the rows of all VMs that asked for co-scheduling (webhook.core.observe.vm_status), kept up with a Store's
caches.

What a reader may assume: a snapshot is of one pass over the caches, and versions only go up. Rows are made anew for
what has changed since the pass before, in slices so short that calls are answered in between; the API server is asked
for nothing. `since` outlives a pass: while a VM's pod and state stay, it does.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import is_
from typing import Final

import msgspec
from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.opt_in import Policy
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.records import virt_launchers
from webhook.telemetry.record import LOGGER

PASS_SECONDS: Final = 10.0
_SLICE_SECONDS: Final = 0.003  # a call waits no longer than this for a pass
_LOOK_EVERY: Final = 16  # VMs, of which a row takes 30 us
_COUNT_EVERY: Final = 256
_CHANGES_KEPT: Final = 20_000
_CHANGES_TOLD: Final = 1_000  # of one pass; with more of them all rows are told


class VMStatuses(Struct, frozen=True, kw_only=True):
    """All VMs, as of one pass.

    Attributes:
        version: goes up with every pass that found a change; 0 before the first.
        at: when the pass ended; RFC 3339.
        rows: in no order.
        late: each cache that is not up to date, and why: rows may be older than they seem.
    """

    version: int
    at: str
    rows: tuple[VMStatus, ...]
    counts: Mapping[State, int]
    by_namespace: Mapping[str, Mapping[State, int]]
    late: tuple[str, ...]


class Changes(Struct, frozen=True, kw_only=True):
    """What became of the rows since some version. `whole`: these are all that there are, and others are gone."""

    version: int
    rows: tuple[VMStatus, ...]
    gone: tuple[NamespacedName, ...]
    whole: bool


class VMStatusTracker:
    """The rows of one Store."""

    def __init__(
        self,
        store: ClusterCache,
        policy: Policy,
        *,
        wall: Callable[[], float] = time.time,
        on_stuck: Callable[[VMStatus], None] = lambda _: None,
        once: bool = False,
    ) -> None:
        self._once = once  # there is no second pass, which would have to know what has changed
        self._on_stuck = on_stuck  # told once of each pod
        self._store = store
        self._policy = policy
        self._wall = wall
        self._known = CachedView(store)
        self._condition: tuple[str, ...] | None = None
        # By NAMESPACE/NAME of the VM: text, for the cycle collector need not look at it.
        self._traces: dict[str, tuple[object, ...]] = {}
        self._rows: dict[str, VMStatus] = {}
        self._by_namespace: dict[str, Counter[State]] = {}
        self._log: deque[tuple[int, str, VMStatus | None]] = deque(maxlen=_CHANGES_KEPT)
        self._forgotten = 0  # changes up to this version are not whole in the log
        self._found: list[tuple[str, VMStatus | None]] = []  # and not shown yet
        self._news = asyncio.Event()
        self.snapshot = VMStatuses(
            version=0, at=_time(wall()), rows=(), counts=dict.fromkeys(State, 0), by_namespace={}, late=()
        )

    async def run(self, every_seconds: float = PASS_SECONDS) -> None:
        """Keep it up until cancelled. A fault of our own is logged: what is shown stays, with its time."""
        while True:
            try:
                await self.refresh()
            except Exception:  # noqa: BLE001 - the task supervisor: rows that stop would lie
                LOGGER.exception("the VMs' states could not be told")
            await asyncio.sleep(every_seconds)

    async def refresh(self) -> VMStatuses:
        """One pass. Only one may be under way at a time."""
        pace = _Pace()
        condition = self._known.condition()
        if condition != self._condition:
            self._condition = condition
            self._traces = dict.fromkeys(self._traces, ())
        groups = await self._groups(pace)
        for number, (vm, keys) in enumerate(groups.items()):
            if number % _LOOK_EVERY == 0:
                await pace.step()
            self._look(vm, keys)
        for number, vm in enumerate(list(self._traces)):
            if number % _COUNT_EVERY == 0:
                await pace.step()
            if vm not in groups:
                del self._traces[vm]
                self._put(vm, None)
        self._publish()
        return self.snapshot

    def changes(self, version: int) -> Changes:
        """What has changed since this version."""
        now = self.snapshot.version
        if not self._forgotten <= version <= now:
            return Changes(version=now, rows=self.snapshot.rows, gone=(), whole=True)
        latest: dict[str, VMStatus | None] = {}
        for at, vm, row in reversed(self._log):
            if at <= version:
                break
            latest.setdefault(vm, row)
        rows = tuple(row for row in latest.values() if row is not None)
        gone = tuple(NamespacedName(*vm.split("/")) for vm, row in latest.items() if row is None)
        return Changes(version=now, rows=rows, gone=gone, whole=False)

    async def after(self, version: int) -> VMStatuses:
        """The first snapshot that is newer than this version."""
        while self.snapshot.version <= version:
            await self._news.wait()
        return self.snapshot

    async def _groups(self, pace: _Pace) -> dict[str, tuple[str, ...]]:
        """VM -> the cache keys of its pods."""
        groups: dict[str, tuple[str, ...]] = {}
        for number, (key, launcher) in enumerate(self._known.launchers()):
            if number % _COUNT_EVERY == 0:
                await pace.step()
            namespace, _, name = key.partition("/")
            vm = f"{namespace}/{launcher.instance or name}"
            groups[vm] = (*groups.get(vm, ()), key)
        return groups

    def _look(self, vm: str, keys: Iterable[str]) -> None:
        """Make the row anew where something that it is made of has changed."""
        there = [(key, launcher) for key in keys if (launcher := self._known.launcher(key))]
        trace = () if self._once else tuple(record for _, launcher in there for record in self._known.trace(launcher))
        before = self._traces.get(vm)
        if before is not None and len(before) == len(trace) and all(map(is_, before, trace)):
            return
        self._traces[vm] = trace
        row = vm_status.vm_status_of([virt_launchers.build(*each) for each in there], self._known, self._policy)
        self._put(vm, row)

    def _put(self, vm: str, row: VMStatus | None) -> None:
        before = self._rows.pop(vm, None) if row is None else self._rows.get(vm)
        if row is not None:
            row = self._rows[vm] = self._aged(row, before)
        if row == before:
            return
        if row and row.state is State.STUCK and (before is None or (before.state, before.pod) != (row.state, row.pod)):
            self._on_stuck(row)
        self._found.append((vm, row))
        counts = self._by_namespace.setdefault(vm.partition("/")[0], Counter())
        if before is not None:
            counts[before.state] -= 1
        if row is not None:
            counts[row.state] += 1
        elif not counts.total():
            del self._by_namespace[vm.partition("/")[0]]  # the last VM there is gone

    def _aged(self, row: VMStatus, before: VMStatus | None) -> VMStatus:
        """The row with the time from which on it has been so: what was seen counts where objects do not tell."""
        if before is None:
            return row
        if (row.state, row.pod) == (before.state, before.pod):
            since = before.since or row.since
        else:
            since = row.since if (row.since or "") > (before.since or "") else _time(self._wall())
        return msgspec.structs.replace(row, since=since)

    def _publish(self) -> None:
        """Show what this pass found, and what one before it did that was cut short."""
        was, changes, at = self.snapshot, self._found, _time(self._wall())
        version = was.version + (bool(changes) or was.version == 0)
        if len(changes) > _CHANGES_TOLD:
            self._log.clear()
            self._forgotten = version
        else:
            for vm, row in changes:
                if len(self._log) == _CHANGES_KEPT:
                    self._forgotten = self._log[0][0]
                self._log.append((version, vm, row))
        by_namespace = was.by_namespace
        if changes:
            by_namespace = {name: dict(+counts) for name, counts in self._by_namespace.items()}
        self.snapshot = VMStatuses(
            version=version,
            at=at,
            rows=tuple(self._rows.values()) if changes else was.rows,
            counts={state: sum(counts.get(state, 0) for counts in by_namespace.values()) for state in State},
            by_namespace=by_namespace,
            late=self._known.late(asyncio.get_running_loop().time()),
        )
        self._found = []
        if version > was.version:
            news, self._news = self._news, asyncio.Event()
            news.set()


class _Pace:
    """Gives others their turn when a slice is over."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _SLICE_SECONDS

    async def step(self) -> None:
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + _SLICE_SECONDS


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
