"""Planner: reads what a plan needs for each VM that is apart or stuck. It only reads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.core.api.kubevirt import HOSTNAME, LABEL_MIGRATION_JOB_UID, without_target_rule
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.observe import restart
from webhook.core.observe.vm_status import VMStatus
from webhook.core.patch.unpatch import without_applied_patch
from webhook.core.reunite.limits import FIRST_VERSION
from webhook.core.scheduler.state.node_info import NO_HEADROOM
from webhook.core.scheduler.state.snapshot import NOT_COUNTED, AnySnapshot, SnapshotUnavailable
from webhook.core.view import ClusterView, NeedObjects
from webhook.kube import reader
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.scheduler_cache.listed_snapshot import list_nodes, list_snapshot
from webhook.plan.step import Step, VMDetails, counted, may_migrate, step

_READS_AT_ONCE: Final = 16
KUBEVIRT_PATH: Final = "/apis/kubevirt.io/v1/kubevirts"
VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")


class Planner:
    """Makes the steps of a plan. It reads at one API server; `known` has the claims and volumes of the VMs.

    Nodes are evaluated beside all pods: those that `cluster` watches, or else those that the API server lists.
    """

    def __init__(
        self, api: Api, known: ClusterView, longhorn_namespace: str, cluster: ClusterCache | None = None
    ) -> None:
        self._api = api
        self._known = known
        self._cluster_cache = cluster or ClusterCache(api, longhorn_namespace=longhorn_namespace)
        self._views: dict[tuple[str, ...], CallView] = {}  # by the names of the target nodes
        self._slots = asyncio.Semaphore(_READS_AT_ONCE)

    async def steps(self, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
        """Return a step for each of these rows; and the version of KubeVirt, empty if it could not be read."""
        version = await self._version()
        found = VERSION.match(version)
        old = f"KubeVirt {version} has no addedNodeSelector, 1.5 is the first" if found and _is_old(found) else ""
        vms = await asyncio.gather(*(self._read(row, old) for row in rows))
        snapshot: AnySnapshot = NOT_COUNTED
        if any(may_migrate(row, vm) for row, vm in zip(rows, vms, strict=True)):
            snapshot, note = counted(await self._list_snapshot())
            vms = [replace(vm, notes=[*note, *vm.notes]) for vm in vms]
        # One after the other: a migration takes resources of its target node from the later ones.
        return [await self._step(row, vm, snapshot) for row, vm in zip(rows, vms, strict=True)], version

    async def step(self, row: VMStatus) -> Step:
        """Return the step for one row, by the pods that are watched, for a KubeVirt that has addedNodeSelector."""
        return await self._step(row, await self._read(row, ""))

    async def _step(self, row: VMStatus, vm: VMDetails, snapshot: AnySnapshot | None = None) -> Step:
        places = row.share_manager_nodes
        view = self._views.get(places) or self._cluster_cache.view()
        while isinstance(found := step(row, vm, self._known, view, snapshot or view.snapshot()), NeedObjects):
            deadline = asyncio.get_running_loop().time() + reader.ANSWER_SECONDS
            view = self._views[places] = await self._cluster_cache.read(view, found.refs, deadline)
        return found

    async def _list_snapshot(self) -> ListedSnapshot | SnapshotUnavailable:
        try:
            nodes = await list_nodes(self._api)
        except ApiError as problem:
            return SnapshotUnavailable(str(problem))
        return await list_snapshot(self._api, nodes, NO_HEADROOM)

    async def _read(self, row: VMStatus, old: str) -> VMDetails:
        async with self._slots:
            return await self._read_vm(row, old)

    async def _read_vm(self, row: VMStatus, old: str) -> VMDetails:
        within = reader.within(row.namespace)
        vmi, problem = await self._get(f"/apis/kubevirt.io/v1/{within}/virtualmachineinstances/{row.name}")
        pod, pod_problem = await self._get(f"/api/v1/{within}/pods/{row.pod}")
        owner = restart.assumed_owner(vmi, row.name)
        vm: Mapping[str, Any] = {}
        if owner:
            vm, _ = await self._get(f"/apis/kubevirt.io/v1/{within}/virtualmachines/{owner}")
        found = details_of(owner, pod, vmi, vm)
        return replace(
            found,
            problem=f"pod {row.pod} could not be read: {pod_problem}" if pod_problem else "",
            unmigratable=old or found.unmigratable,
            notes=[f"the VM's condition LiveMigratable could not be read: {problem}"] if problem else [],
        )

    async def _get(self, path: str) -> tuple[Mapping[str, Any], str]:
        try:
            return await reader.get(self._api, path), ""
        except ApiError as problem:
            return {}, str(problem)

    async def _version(self) -> str:
        found, _ = await self._get(KUBEVIRT_PATH)
        items: list[Any] = found.get("items") or []
        versions = [(item.get("status") or {}).get("observedKubeVirtVersion") for item in items]
        return next((str(version) for version in versions if version), "")


def details_of(owner: str | None, pod: Mapping[str, Any], vmi: Mapping[str, Any], vm: Mapping[str, Any]) -> VMDetails:
    """Return what a plan needs of a VM's pod, VMI and VirtualMachine, as JSON; each is empty if it is not known."""
    return VMDetails(
        pod=_pod(pod, vmi) if pod else None,
        owner=owner,
        run_strategy=restart.run_strategy(vm.get("spec") or {}) if vm else None,
        unmigratable=_unmigratable(vmi),
    )


def _is_old(version: re.Match[str]) -> bool:
    return tuple(map(int, version.groups())) < FIRST_VERSION


def _pod(value: Mapping[str, Any], vmi: Mapping[str, Any]) -> Pod:
    """The pod as it was at its creation, which is what KubeVirt makes the target pod of a migration from.

    It has no node, nothing that the webhook wrote, and nothing that an earlier migration added: a node selector, and
    KubeVirt's rule that keeps the target off the VM's node.
    """
    pod, _ = without_applied_patch(msgspec.convert(value, Pod))
    pod = replace(pod, spec=replace(pod.spec, node_name=None))
    own = (vmi.get("spec") or {}).get("nodeSelector") or {}
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is None:
        return pod
    pod = without_target_rule(pod)
    if HOSTNAME in own:
        return pod
    left = {key: wanted for key, wanted in (pod.spec.node_selector or {}).items() if key != HOSTNAME}
    return replace(pod, spec=replace(pod.spec, node_selector=left))


def _unmigratable(vmi: Mapping[str, Any]) -> str:
    """Why KubeVirt can't migrate the VM, by the condition LiveMigratable that virt-handler sets; empty if it can."""
    for condition in (vmi.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "LiveMigratable" and condition.get("status") == "False":
            return f"KubeVirt can't migrate it: {condition.get('reason')}: {condition.get('message')}"
    return ""
