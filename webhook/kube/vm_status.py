"""VMStatusTracker: the status of all VMs that asked for co-scheduling (core/observe/vm_state.py), and what is counted
of them: their starts by decision (VMStarts), and the seconds in each state (VMSeconds).

What a reader may assume: a snapshot is the result of one pass over the caches. A pass computes all rows, in slices of
3 ms, so that admissions are answered in between. It sends no request to the API server. `since` outlives a pass: it
stays while a VM's pod and state stay.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from webhook.core import refs
from webhook.core.api.meta import NamespacedName, utc_text
from webhook.core.observe.past_decision import Decided, past_decision
from webhook.core.observe.vm_state import vm_status_of
from webhook.core.observe.vm_status import State, VMStatus, count_states
from webhook.core.opt_in import OptIn, Policy, opt_in_of, why_other_pod
from webhook.core.view import Kind, NoObject
from webhook.kube.cache.cached_view import CachedView
from webhook.kube.cache.caches import Caches
from webhook.kube.records.pods import PodRecord
from webhook.kube.records.virt_launchers import vm_key
from webhook.telemetry.record import LOGGER

PASS_SECONDS: Final = 10.0  # from the end of one pass to the beginning of the next
_GAP_SECONDS_MAX: Final = 2 * PASS_SECONDS
_SLICE_SECONDS: Final = 0.003
_COUNT_EVERY: Final = 256  # how many steps, of less than 1 us each, run between two looks at the clock
_ROWS_EVERY: Final = 16  # rows between two looks at the clock; a row takes 50 us


class Slices:
    """Lets other tasks run when a slice of 3 ms is over."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _SLICE_SECONDS

    async def step(self) -> None:
        """Let other tasks run, if the slice is over."""
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + _SLICE_SECONDS


class VMStarts:
    """The starts that `caches` have shown since their first list of pods, by the decision for their pod.

    What a reader may assume: a start is counted once, when the cache of pods adds its pod. That pod is neither the
    target of a migration nor one that only provisions a disk. Pods of the first list started at an unknown time and are
    not counted. A watch that continues after an interruption shows every pod. If the API server makes the cache list
    again, the list has the pods that were created meanwhile. It lacks those that were deleted meanwhile, and nobody can
    count these.
    """

    def __init__(self, caches: Caches, policy: Policy) -> None:
        self._policy = policy
        self._view = CachedView(caches)
        self._pods = caches[Kind.VIRT_LAUNCHER_POD]
        self._pods.on_add = self._count
        self._starts = dict.fromkeys(Decided, 0)
        del self._starts[Decided.MIGRATED]  # no VM starts by a migration

    @property
    def by_decision(self) -> Mapping[Decided, int]:
        """The number of starts by decision; empty before the first list, because nothing is known then."""
        return self._starts if self._pods.synced else {}

    def _count(self, _: str, record: PodRecord) -> None:
        pod = record.virt_launcher
        if pod is None or why_other_pod(pod, "", self._view) is not None:
            return
        if isinstance(opt_in_of(pod, pod.metadata.namespace or "", self._view, self._policy), OptIn):
            self._starts[past_decision(pod).decided] += 1


class VMSeconds:
    """The VM-seconds of one cluster since the process started, by state.

    What a reader may assume: no number ever decreases, and no time is counted that no pass saw. Two passes that end
    more than twice PASS_SECONDS apart have a pass missing between them: nothing is counted, not even as unknown.
    """

    def __init__(self) -> None:
        self._seconds = dict[str, float](dict.fromkeys(State, 0.0))
        self._before: tuple[Mapping[str, int], bool, float] | None = None

    @property
    def by_state(self) -> Mapping[str, float]:
        """The VM-seconds of every state."""
        return self._seconds

    def add(self, counts: Mapping[str, int], *, late: bool, at: float) -> None:
        """Count the time since the pass before, in the states that the pass before found.

        `at` is when this pass ended, by a clock that never goes back. `late` says that a cache was not up to date. If
        this pass or the pass before was late, the time counts as unknown for every VM.
        """
        before, self._before = self._before, (counts, late, at)
        if before is None:
            return
        counts_before, late_before, at_before = before
        seconds = at - at_before
        if seconds > _GAP_SECONDS_MAX:
            return
        for state, count in counts_before.items():
            self._seconds[State.UNKNOWN if late or late_before else state] += count * seconds


class VMStatuses(Struct, frozen=True, kw_only=True):
    """The status of all VMs after one pass.

    Attributes:
        at: when the pass ended (RFC 3339).
        rows: one status a VM, in no order.
        late: a sentence for each cache that is not up to date: the rows may be older than `at`.
        known: whether the pods of the VMs were listed once. If not, `rows` is empty and says nothing.
        as_of: the time up to which the rows are certain: `at`, or earlier if a cache is late.
    """

    at: str
    rows: tuple[VMStatus, ...] = ()
    counts: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(State, 0))
    late: tuple[str, ...] = ()
    known: bool = True
    as_of: str = ""


class VMStatusTracker:
    """The status of the VMs of one cluster."""

    def __init__(
        self,
        caches: Caches,
        policy: Policy,
        *,
        wall: Callable[[], float] = time.time,
        on_stuck: Callable[[VMStatus], None] = lambda _: None,
    ) -> None:
        self._on_stuck = on_stuck  # called once for each pod
        self._policy = policy
        self._wall = wall
        self._view = CachedView(caches)
        self._rows: dict[str, VMStatus] = {}  # by NAMESPACE/NAME of the VM
        self.seconds = VMSeconds()
        self.snapshot = VMStatuses(at=utc_text(wall()), known=False)

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
        slices, rows, began = Slices(), dict[str, VMStatus](), utc_text(self._wall())
        for number, (vm, keys) in enumerate((await self._groups(slices)).items()):
            if number % _ROWS_EVERY == 0:
                await slices.step()
            row = self._row(keys, began)
            if row is not None:
                rows[vm] = self._aged(row, self._rows.get(vm))
        self._log_stuck(rows)
        self._rows = rows
        now, at = asyncio.get_running_loop().time(), utc_text(self._wall())
        late = self._view.late(now)
        self.snapshot = VMStatuses(
            at=at,
            rows=tuple(rows.values()),
            counts=count_states(rows.values()),
            late=late,
            known=self._view.knows_pods(),
            as_of=utc_text(self._wall() - self._view.age(now)) if late else at,
        )
        self.seconds.add(self.snapshot.counts, late=bool(late), at=now)
        return self.snapshot

    def has_vm(self, namespace: str, name: str) -> bool:
        """Whether the cluster has a VirtualMachineInstance of this name, or may have it."""
        return self._view.get(refs.virtual_machine_instance(NamespacedName(namespace, name))) is not NoObject.NOT_FOUND

    async def _groups(self, slices: Slices) -> dict[str, tuple[str, ...]]:
        """Return NAMESPACE/NAME of each VM -> the cache keys of its pods."""
        groups: dict[str, tuple[str, ...]] = {}
        for number, (key, pod) in enumerate(self._view.opted_in_pods(self._policy)):
            if number % _COUNT_EVERY == 0:
                await slices.step()
            vm = vm_key(pod)
            groups[vm] = (*groups.get(vm, ()), key)
        return groups

    def _row(self, keys: Sequence[str], at: str) -> VMStatus | None:
        pods = [pod for pod in map(self._view.virt_launcher, keys) if pod is not None]
        return vm_status_of(pods, self._view, self._policy, at)

    def _aged(self, row: VMStatus, before: VMStatus | None) -> VMStatus:
        """Return the row with its `since`: the time in the objects, or of the pass that first saw this state."""
        if before is None or row.state is State.NOT_RUNNING:
            return row
        if (row.state, row.pod) == (before.state, before.pod):
            since = before.since or row.since
        else:
            since = row.since if (row.since or "") > (before.since or "") else utc_text(self._wall())
        return row if since == row.since else msgspec.structs.replace(row, since=since)

    def _log_stuck(self, rows: Mapping[str, VMStatus]) -> None:
        for vm, row in rows.items():
            before = self._rows.get(vm)
            if row.state is State.STUCK and (before is None or (before.state, before.pod) != (row.state, row.pod)):
                self._on_stuck(row)
