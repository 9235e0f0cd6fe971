"""VMStatusTracker: the status of all VMs that asked for co-scheduling (core/observe/vm_status.py).

What a reader may assume: a snapshot is the result of one pass over the caches, and its version only increases. A pass
computes the rows again whose records have changed. The pass works in slices of 3 ms, so that admissions are answered in
between. It sends no request to the API server. `since` outlives a pass: it stays while a VM's pod and state stay.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from webhook.core.api.meta import NamespacedName, utc_text
from webhook.core.api.pod import Pod
from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.opt_in import Policy
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.caches import Caches
from webhook.kube.node_problems import node_problems
from webhook.kube.records.virt_launchers import vm_key
from webhook.kube.row_records import RowRecords
from webhook.kube.slices import COUNT_EVERY, Slices
from webhook.kube.vm_seconds import PASS_SECONDS, VMSeconds
from webhook.telemetry.record import LOGGER

_CHANGES_KEPT: Final = 20_000
_CHANGES_PER_PASS_MAX: Final = 1_000  # after a pass with more changes a reader gets all rows


class VMStatuses(Struct, frozen=True, kw_only=True):
    """The status of all VMs after one pass.

    Attributes:
        version: increases with every pass that found a change; 0 before the first pass.
        at: when the pass ended (RFC 3339).
        rows: one status a VM, in no order.
        late: a sentence for each cache that is not up to date: the rows may be older than `at`.
        known: whether the pods of the VMs were listed once. If not, `rows` is empty and says nothing.
        as_of: the time up to which the rows are certain: `at`, or earlier if a cache is late.
        nodes: node name -> why no VM can start there, for nodes of `rows` only. A node without such a reason is
            absent. None if the nodes are not up to date.
    """

    version: int
    at: str
    rows: tuple[VMStatus, ...]
    counts: Mapping[State, int]
    by_namespace: Mapping[str, Mapping[State, int]]
    late: tuple[str, ...]
    known: bool = True
    as_of: str = ""
    nodes: Mapping[str, str] | None = None


class Changes(Struct, frozen=True, kw_only=True):
    """The changes since a version: new and changed rows, and VMs that are gone.

    `whole`: `rows` has all VMs, and every other VM is gone.
    """

    version: int
    rows: tuple[VMStatus, ...]
    gone: tuple[NamespacedName, ...]
    whole: bool


class VMStatusTracker:
    """The status of the VMs of one cluster."""

    def __init__(
        self,
        caches: Caches,
        policy: Policy,
        *,
        wall: Callable[[], float] = time.time,
        on_stuck: Callable[[VMStatus], None] = lambda _: None,
        once: bool = False,
    ) -> None:
        self._on_stuck = on_stuck  # called once for each pod
        self._policy = policy
        self._wall = wall
        self._view = CachedView(caches)
        self._records = RowRecords(self._view, once=once)
        self._rows: dict[str, VMStatus] = {}  # by NAMESPACE/NAME of the VM, as the records
        self._by_namespace: dict[str, Counter[State]] = {}
        self._log: deque[tuple[int, str, VMStatus | None]] = deque(maxlen=_CHANGES_KEPT)
        self._forgotten = 0  # the log lacks changes up to this version
        self._found: list[tuple[str, VMStatus | None]] = []  # changes that no snapshot shows yet
        self._changed = asyncio.Event()
        self.seconds = VMSeconds()
        self.snapshot = VMStatuses(
            version=0,
            at=utc_text(wall()),
            rows=(),
            counts=dict.fromkeys(State, 0),
            by_namespace={},
            late=(),
            known=False,
        )

    async def run(self, every_seconds: float = PASS_SECONDS) -> None:
        """Repeat `refresh` until cancelled. A fault of the program is logged, and the last snapshot stays."""
        while True:
            try:
                await self.refresh()
            except Exception:  # noqa: BLE001 - the task supervisor: rows that no task updates would be wrong
                LOGGER.exception("the VMs' states could not be computed")
            await asyncio.sleep(every_seconds)

    async def refresh(self) -> VMStatuses:
        """Make one pass. Return the new snapshot. Only one pass may be under way at a time."""
        slices = Slices()
        await self._records.pass_over(await self._groups(slices), slices, self._renew)
        self._publish(await node_problems(list(self._rows.values()), self._view, slices))
        now, found = asyncio.get_running_loop().time(), self.snapshot
        self.seconds.add(found.counts, late=bool(found.late), at=now)
        return found

    def changes(self, version: int) -> Changes:
        """Return what has changed since this version; all rows if the log does not reach back to it."""
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
        """Wait for a snapshot that is newer than this version, and return it."""
        while self.snapshot.version <= version:
            await self._changed.wait()
        return self.snapshot

    async def _groups(self, slices: Slices) -> dict[str, tuple[str, ...]]:
        """Return NAMESPACE/NAME of each VM -> the cache keys of its pods."""
        groups: dict[str, tuple[str, ...]] = {}
        for number, (key, virt_launcher) in enumerate(self._view.opted_in_pods(self._policy)):
            if number % COUNT_EVERY == 0:
                await slices.step()
            vm = vm_key(key, virt_launcher)
            groups[vm] = (*groups.get(vm, ()), key)
        return groups

    def _renew(self, vm: str, pods: list[Pod] | None) -> None:
        self._put(vm, vm_status.vm_status_of(pods, self._view, self._policy) if pods is not None else None)

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
        """Return the row with its `since`: the time in the objects, or of the pass that first saw this state."""
        if before is None:
            return row
        if (row.state, row.pod) == (before.state, before.pod):
            since = before.since or row.since
        else:
            since = row.since if (row.since or "") > (before.since or "") else utc_text(self._wall())
        return msgspec.structs.replace(row, since=since)

    def _publish(self, nodes: Mapping[str, str] | None) -> None:
        """Show what this pass found, and what an earlier pass found that was canceled."""
        was, changes, at = self.snapshot, self._found, utc_text(self._wall())
        now = asyncio.get_running_loop().time()
        late = self._view.late(now)
        version = was.version + (bool(changes) or was.version == 0)
        if len(changes) > _CHANGES_PER_PASS_MAX:
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
            late=late,
            known=self._view.knows_pods(),
            as_of=utc_text(self._wall() - self._view.age(now)) if late else at,
            nodes=nodes,
        )
        self._found = []
        if version > was.version:
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
