"""status --plan: what a plan takes is read for each VM that is apart or stuck, and the plan is printed.

Standard output is YAML documents and comments, for `kubectl create -f -`; what else is said goes to standard error.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.core.api.container import Quantities
from webhook.core.api.kubevirt import LABEL_MIGRATION_JOB_UID
from webhook.core.api.pod import Pod
from webhook.core.observe import restart
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.scheduler.state import node_info
from webhook.core.scheduler.state.node_info import NodeRequests
from webhook.core.scheduler.state.pod_requests import usage
from webhook.core.view import ClusterView, NeedObjects
from webhook.explain.created import as_created
from webhook.kube import reader
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.client.wire import Decoders
from webhook.status import plan
from webhook.status.plan import Machine, Room, Step
from webhook.terminal import to_yaml

_AT_ONCE: Final = 16
_KUBEVIRTS: Final = "/apis/kubevirt.io/v1/kubevirts"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)")
_LEAST: Final = (1, 5)  # KubeVirt whose migrations have addedNodeSelector; an older one would drop it and go anywhere


class Planner:
    """Reads at one API server; `known` has the VMs' claims and volumes."""

    def __init__(self, api: Api, known: ClusterView, longhorn_namespace: str) -> None:
        self._api = api
        self._known = known
        self._store = ClusterCache(api, longhorn_namespace=longhorn_namespace)
        self._views: dict[tuple[str, ...], CallView] = {}  # of the nodes that were read for a target
        self._rooms: dict[str, Room] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def steps(self, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
        """One for each VM that is apart or stuck; and KubeVirt's version, empty where it is not known."""
        version = await self._version()
        found = _VERSION.match(version)
        old = f"KubeVirt {version} has no addedNodeSelector, 1.5 is the first" if found and _is_old(found) else ""
        machines = await asyncio.gather(*(self._read(row, old) for row in rows))
        # One after the other: who comes first gets the room that is left.
        return [await self._step(row, machine) for row, machine in zip(rows, machines, strict=True)], version

    async def _step(self, row: VMStatus, machine: Machine) -> Step:
        places = plan.targets(row)
        there = await self._room(places[0]) if len(places) == 1 else None
        view = self._views.get(places) or self._store.view()
        while isinstance(step := plan.step(row, machine, self._known, view, there), NeedObjects):
            deadline = asyncio.get_running_loop().time() + reader.ANSWER_SECONDS
            view = self._views[places] = await self._store.read(view, step.refs, deadline)
        return step

    async def _read(self, row: VMStatus, old: str) -> Machine:
        async with self._slots:
            return await self._machine(row, old)

    async def _machine(self, row: VMStatus, old: str) -> Machine:
        within = reader.within(row.namespace)
        instance, problem = await self._get(f"/apis/kubevirt.io/v1/{within}/virtualmachineinstances/{row.name}")
        notes = [f"whether it can be migrated was not read: {problem}"] if problem else []
        pod, pod_trouble = await self._get(f"/api/v1/{within}/pods/{row.pod}")
        owner = _owner(instance)
        machine: Mapping[str, Any] = {}
        if owner:
            machine, _ = await self._get(f"/apis/kubevirt.io/v1/{within}/virtualmachines/{owner}")
        return Machine(
            pod=_pod(pod, instance) if pod else None,
            problem=f"pod {row.pod} was not read: {pod_trouble}" if pod_trouble else "",
            owner=owner,
            run_strategy=restart.run_strategy(machine.get("spec") or {}) if machine else None,
            unmigratable=old or _unmigratable(instance),
            notes=notes,
        )

    async def _room(self, node: str) -> Room:
        """What is left on a node: read once for all that might go there."""
        if node not in self._rooms:
            self._rooms[node] = await self._read_room(node)
        return self._rooms[node]

    async def _read_room(self, node: str) -> Room:
        load = NodeRequests()
        try:
            found = await reader.get(self._api, f"/api/v1/nodes/{reader.name(node)}")
            fields = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
            pods = await reader.get_all(self._api, "/api/v1/pods", Decoders(Pod), fields=fields)
            has = node_info.allocatable(
                msgspec.convert((found.get("status") or {}).get("allocatable"), Quantities | None)
            )
        except (ApiError, msgspec.ValidationError) as error:
            return Room({}, load, str(error))
        for pod in pods:
            load.add(usage(pod.spec, pod.status))
        return Room(has, load)

    async def _get(self, path: str) -> tuple[Mapping[str, Any], str]:
        try:
            return await reader.get(self._api, path), ""
        except ApiError as problem:
            return {}, str(problem)

    async def _version(self) -> str:
        found, _ = await self._get(_KUBEVIRTS)
        items: list[Any] = found.get("items") or []
        versions = [(item.get("status") or {}).get("observedKubeVirtVersion") for item in items]
        return next((str(version) for version in versions if version), "")


def render(steps: Sequence[Step], origin: str, at: str, version: str) -> str:
    """The plan as YAML."""
    needs = f"this is {version}" if version else "its version was not read"
    parts = [f"# {origin} at {at}. Migrations need KubeVirt 1.5 or newer; {needs}.\n"]
    for step in steps:
        boundary = "---\n" if step.migration else "\n"
        comments = "".join(f"{line}\n" for line in step.lines())
        parts.append(boundary + comments + (to_yaml(step.migration) if step.migration else ""))
    return "".join(parts)


def summary(steps: Sequence[Step]) -> str:
    """How many of what."""
    if not steps:
        return "nothing to do: no VM is apart or stuck"
    migrations = sum(step.migration is not None for step in steps)
    stuck = sum(step.row.state is State.STUCK for step in steps)
    apart = len(steps) - stuck
    return f"{apart} apart, {stuck} stuck; {migrations} can be brought together by the live migrations above"


def _is_old(version: re.Match[str]) -> bool:
    return tuple(map(int, version.groups())) < _LEAST


def _pod(value: Mapping[str, Any], instance: Mapping[str, Any]) -> Pod:
    """As it was created: a migration's target pod has none of what we and the scheduler have written since.

    Nor what an earlier migration added to its node selector, such as one of ours: the next starts from the VM itself.
    """
    pod = msgspec.convert(as_created(dict(value)), Pod)
    own = (instance.get("spec") or {}).get("nodeSelector") or {}
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is None or plan.HOSTNAME in own:
        return pod
    left = {key: wanted for key, wanted in (pod.spec.node_selector or {}).items() if key != plan.HOSTNAME}
    return replace(pod, spec=replace(pod.spec, node_selector=left))


def _owner(instance: Mapping[str, Any]) -> str | None:
    owners = (instance.get("metadata") or {}).get("ownerReferences") or []
    return next((owner.get("name") for owner in owners if owner.get("kind") == "VirtualMachine"), None)


def _unmigratable(instance: Mapping[str, Any]) -> str:
    """The condition LiveMigratable, which virt-handler posts."""
    for condition in (instance.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "LiveMigratable" and condition.get("status") == "False":
            return f"KubeVirt can't migrate it: {condition.get('reason')}: {condition.get('message')}"
    return ""
