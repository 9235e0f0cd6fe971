"""StuckVMs: reads the stuck VMs of a live cluster, and deletes the pod of each VM that may be restarted.

`webhook.core.reunite.stuck` decides. Invariants: a deletion names the uid and the resourceVersion for which it was
decided, so that a pod that was bound or deleted meanwhile stays as it is. What is remembered between two rounds only
saves requests and deletions: without it the same VMs are restarted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.core.api.pod import Pod
from webhook.core.observe.restart import owner_of, run_strategy
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.reunite.assumed_start import AssumedStart, still_assumed
from webhook.core.reunite.migration import LABEL_REUNITE
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.reunite.stuck import RestartVM, StuckLimits, StuckVM, decide_restart
from webhook.kube import reader
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.reunite.writer import Result, delete

_READS_AT_ONCE: Final = 16
_REMEMBERED_SECONDS: Final = 60.0  # a VM that waits for resources costs three requests in this time, not in each round
_KUBEVIRT: Final = "/apis/kubevirt.io/v1"


class StuckPlan(Struct, frozen=True, kw_only=True):
    """The VMs to restart now. `waiting`: for each other stuck VM the first rule that says no."""

    restarts: Sequence[RestartVM] = ()
    waiting: Mapping[tuple[str, str], NotYet] = {}


class StuckVMs:
    """The stuck VMs of one cluster. One call of `plan` ends before the next one begins."""

    def __init__(self, api: Api, cluster: ClusterCache, limits: StuckLimits) -> None:
        """`cluster` watches all pods."""
        self._api = api
        self._cluster = cluster
        self._limits = limits
        self._assumed: list[AssumedStart] = []
        self._remembered: dict[tuple[str, str], tuple[StuckVM, float]] = {}
        self._slots = asyncio.Semaphore(_READS_AT_ONCE)

    async def plan(self, rows: Iterable[VMStatus], now: float) -> StuckPlan:
        """Return which of these VMs to restart, those that wait longest first. `now`: seconds since 1970."""
        rows = list(rows)
        found = sorted((row for row in rows if row.state is State.STUCK), key=lambda row: (row.since or "", row.pod))
        self._assumed = still_assumed(self._assumed, rows, now)
        pods = {(row.namespace, row.pod) for row in found}
        self._remembered = {
            pod: each for pod, each in self._remembered.items() if pod in pods and now < each[1] + _REMEMBERED_SECONDS
        }
        known = await asyncio.gather(*(self._known(row, now) for row in found))
        waiting: dict[tuple[str, str], NotYet] = {}
        restarts: list[RestartVM] = []
        for row, vm in zip(found, known, strict=True):
            decided = await self._decide(row, vm, now)
            if isinstance(decided, NotYet):
                waiting[row.namespace, row.name] = decided
            else:
                restarts.append(decided)
                self._forget_start(row)
                self._assumed.append(decided.assumed_start(now))
        return StuckPlan(restarts=restarts, waiting=waiting)

    async def restart(self, action: RestartVM) -> str:
        """Delete the VM's pod. Return why the API server did not delete it, empty if it did."""
        vm = action.vm
        path = f"/api/v1/{reader.within(vm.row.namespace)}/pods/{reader.name(vm.row.pod)}"
        written = await delete(self._api, path, vm.uid, vm.resource_version)
        if written.result is Result.REFUSED:  # after any other result the pod is deleted, or may be
            self._forget_start(vm.row)
        return written.because

    def _forget_start(self, row: VMStatus) -> None:
        vm = (row.namespace, row.name)
        self._assumed = [each for each in self._assumed if (each.namespace, each.vmi) != vm]

    async def _decide(self, row: VMStatus, vm: StuckVM | NotYet, now: float) -> RestartVM | NotYet:
        """Decide by what is remembered of the VM. Read the VM again before its pod is deleted, and decide again."""
        decided = await self._decide_now(vm, now)
        return await self._decide_now(await self._read(row), now) if isinstance(decided, RestartVM) else decided

    async def _decide_now(self, vm: StuckVM | NotYet, now: float) -> RestartVM | NotYet:
        if isinstance(vm, NotYet):
            return vm
        await asyncio.sleep(0)  # in a large cluster one VM takes some milliseconds: other tasks run in between
        view = self._cluster.view()
        found = decide_restart(vm, now, self._limits, self._assumed, view)
        while view.missing:
            deadline = asyncio.get_running_loop().time() + reader.ANSWER_SECONDS
            view = await self._cluster.read(view, tuple(view.missing), deadline)
            found = decide_restart(vm, now, self._limits, self._assumed, view)
        return found

    async def _known(self, row: VMStatus, now: float) -> StuckVM | NotYet:
        """Return what is remembered of the VM's present pod, or read it."""
        key = (row.namespace, row.pod)
        if key in self._remembered:
            return self._remembered[key][0]
        async with self._slots:
            vm = await self._read(row)
        if isinstance(vm, StuckVM):
            self._remembered[key] = (vm, now)
        return vm

    async def _read(self, row: VMStatus) -> StuckVM | NotYet:
        """Read the VM; return why it is not known if an object can't be read."""
        try:
            within = reader.within(row.namespace)
            pod = await reader.get(self._api, f"/api/v1/{within}/pods/{reader.name(row.pod)}")
            name = reader.name(row.name)
            vmi = await reader.get(self._api, f"{_KUBEVIRT}/{within}/virtualmachineinstances/{name}")
            owner = owner_of(vmi)
            vm: dict[str, Any] = {}
            if owner:
                vm = await reader.get(self._api, f"{_KUBEVIRT}/{within}/virtualmachines/{reader.name(owner)}")
            return _stuck_vm(row, pod, vmi, owner, vm)
        except (ApiError, msgspec.ValidationError) as problem:
            return Rule.NOT_EVALUATED.says_no(because=str(problem))


def _stuck_vm(
    row: VMStatus, pod: Mapping[str, Any], vmi: Mapping[str, Any], owner: str | None, vm: Mapping[str, Any]
) -> StuckVM:
    meta = vmi.get("metadata") or {}
    failure = (vm.get("status") or {}).get("startFailure") or {}
    return StuckVM(
        row=row,
        pod=msgspec.convert(pod, Pod),
        uid=pod["metadata"].get("uid", ""),
        resource_version=pod["metadata"].get("resourceVersion", ""),
        started=meta.get("creationTimestamp", ""),
        owner=owner,
        run_strategy=run_strategy(vm.get("spec") or {}) if vm else None,
        failed_starts=failure.get("consecutiveFailCount", 0),
        reunite=(meta.get("annotations") or {}).get(LABEL_REUNITE),
    )
