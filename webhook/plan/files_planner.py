"""FilesPlanner: the steps of a plan for a cluster that files describe. It reads nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.restart import assumed_owner
from webhook.core.observe.vm_status import VMStatus
from webhook.core.scheduler.state import node_info
from webhook.core.scheduler.state.node_info import NodeRequests
from webhook.core.scheduler.state.pod_requests import usage
from webhook.core.view import NeedObjects, NoObject
from webhook.files.manifests import Manifests
from webhook.plan.planner import details_of
from webhook.plan.step import Step, TargetNode, step

_KUBEVIRT = "kubevirt.io/v1"


class FilesPlanner:
    """Makes the steps of a plan, as Planner does at an API server."""

    def __init__(self, manifests: Manifests) -> None:
        self._manifests = manifests
        self._target_nodes: dict[str, TargetNode] = {}

    def steps(self, rows: Sequence[VMStatus]) -> tuple[list[Step], str]:
        """Return a step for each of these rows; and the version of KubeVirt, which files do not say.

        A migration takes resources of its target node from the later ones.
        """
        return [self._step(row) for row in rows], ""

    def _step(self, row: VMStatus) -> Step:
        vmi = self._document(_KUBEVIRT, "VirtualMachineInstance", row.namespace, row.name)
        owner = assumed_owner(vmi, row.name)
        vm = self._document(_KUBEVIRT, "VirtualMachine", row.namespace, owner) if owner else {}
        details = details_of(owner, self._document("v1", "Pod", row.namespace, row.pod), vmi, vm)
        if not vmi:
            details = replace(details, notes=["the VM's condition LiveMigratable is not known: no VMI is described"])
        places = row.share_manager_nodes
        target = self._target_node(places[0]) if len(places) == 1 else None
        found = step(row, details, self._manifests, self._manifests, target)
        assert not isinstance(found, NeedObjects)  # noqa: S101 - files hold everything
        return found

    def _target_node(self, name: str) -> TargetNode:
        """The target node, counted once for all VMs whose share-managers are on it."""
        if name not in self._target_nodes:
            self._target_nodes[name] = self._counted(name)
        return self._target_nodes[name]

    def _counted(self, name: str) -> TargetNode:
        node, requested = self._manifests.node(name), NodeRequests()
        if isinstance(node, NoObject) or not (node.status and node.status.allocatable):
            return TargetNode({}, requested, f"the files have no status.allocatable of node {name}")
        if problem := self._manifests.objects.unread(Pod):
            return TargetNode({}, requested, f"pods: {problem}")
        for pod in self._manifests.objects.of(Pod).values():
            if pod.spec.node_name == name and not is_finished(pod):
                requested.add(usage(pod.spec, pod.status))
        return TargetNode(node_info.allocatable(node.status.allocatable), requested)

    def _document(self, api_version: str, kind: str, namespace: str, name: str) -> Mapping[str, Any]:
        found = self._manifests.objects.documents(api_version, kind).get(NamespacedName(namespace, name))
        return found.value if found else {}
