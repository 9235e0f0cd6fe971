"""Planner: reads what a step of a plan needs, for each VM that is apart. It only reads."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.core.observe.vm_status import VMStatus
from webhook.core.view import ClusterView
from webhook.kube import reader
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.cache.view import CallView
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, APIResource
from webhook.plan.planner import details_of
from webhook.plan.step import Step, VMDetails, step

_READS_AT_ONCE: Final = 16


class Planner:
    """Makes the steps of a plan. `known` has the claims and volumes of the VMs.

    Nodes are evaluated beside all pods that `cluster` watches.
    """

    def __init__(self, api: Api, known: ClusterView, cluster: ClusterCache) -> None:
        self._api = api
        self._known = known
        self._cluster_cache = cluster
        self._views: dict[tuple[str, ...], CallView] = {}  # by the names of the target nodes
        self._slots = asyncio.Semaphore(_READS_AT_ONCE)

    async def step(self, row: VMStatus) -> Step:
        """Return the step for one row, for a KubeVirt that has addedNodeSelector."""
        async with self._slots:
            vm = await self._read_vm(row)
        places = row.share_manager_nodes
        view = self._views.get(places) or self._cluster_cache.view()
        found = step(row, vm, self._known, view, view.snapshot())
        while view.missing:
            deadline = asyncio.get_running_loop().time() + reader.ANSWER_SECONDS
            view = self._views[places] = await self._cluster_cache.read(view, tuple(view.missing), deadline)
            found = step(row, vm, self._known, view, view.snapshot())
        return found

    async def _read_vm(self, row: VMStatus) -> VMDetails:
        vmi, problem = await self._get(VIRTUAL_MACHINE_INSTANCE, row.namespace, row.name)
        pod, pod_problem = await self._get(POD, row.namespace, row.pod)
        owner = vmi.virtual_machine if vmi else row.name
        vm, _ = await self._get(VIRTUAL_MACHINE, row.namespace, owner) if owner else (None, "")
        return replace(
            details_of(owner, pod, vmi, vm),
            problem=f"pod {row.pod} could not be read: {pod_problem}" if pod_problem else "",
            notes=[f"the VM's condition LiveMigratable could not be read: {problem}"] if problem else [],
        )

    async def _get(self, kind: APIResource[Any], namespace: str, name: str) -> tuple[Any, str]:
        try:
            found = await reader.get(self._api, kind.path(reader.within(namespace), name))
            return msgspec.convert(found, kind.type), ""
        except (ApiError, msgspec.ValidationError) as problem:
            return None, str(problem)
