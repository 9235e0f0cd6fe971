"""Whether the node of a VM's share-managers takes the VM: as the target of a migration, or at the VM's next start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.core import refs
from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.evidence import share_managers
from webhook.core.live_migration.target import start_pod, target_pod
from webhook.core.live_migration.vm import VM
from webhook.core.placement import feasibility
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.never_required import why_never_required
from webhook.core.scheduler.plugins.taint_toleration import taint_text, tolerates
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import NoObject
from webhook.objects.cluster import Cluster

_MEDIK8S: Final = "medik8s.io/"  # its operators taint a node that they remediate or take into maintenance
_SERVES: Final = (None, "running")
_NOT_READY: Final = ("Ready", "False")  # of a share-manager that starts, or that ends again and again


def why_not_home(vm: VM, cluster: Cluster) -> NotYet | None:
    """Return why the VM can't be migrated to its share-managers now; None if it can, as far as is known.

    kube-scheduler judges what is not evaluated here: rules between pods and the like. It places the target on that node
    only, or the migration fails after a minute. It might evict other pods for a VM that has a priority.
    """
    source = cluster.get(refs.node(vm.row.node or ""))
    pod = vm.pod and target_pod(vm, vm.pod, None if isinstance(source, NoObject) else source)
    if pod is None or vm.pod is None:
        return Rule.NOT_PLACEABLE.says_no(f"pod {vm.row.pod} is not there any more")
    why = next(_against(vm, pod, cluster), "")
    if not why:
        return None
    start = start_pod(vm, vm.pod)
    if not next(_against(vm, start, cluster), ""):
        why += f"; its next start can bring it there: {vm.restart}"
    return Rule.NOT_PLACEABLE.says_no(why)


def hostname_of(name: str, cluster: Cluster) -> str:
    """Return the label kubernetes.io/hostname of a node; empty if it has none."""
    node = cluster.get(refs.node(name))
    return "" if isinstance(node, NoObject) else node.metadata.label(HOSTNAME) or ""


def _against(vm: VM, pod: Pod, cluster: Cluster) -> Iterator[str]:
    """Yield what is against the pod on the node of the share-managers, the first thing first."""
    home, snapshot = cluster.get(refs.node(vm.home)), cluster.snapshot()
    yield from _not_served(vm, cluster)
    if isinstance(snapshot, SnapshotUnavailable):
        yield "the pods and resources of the nodes are not known"
    volumes = share_managers.bound_volumes(share_managers.find_share_managers(pod, vm.row.namespace, cluster))
    cycle = CycleState(pod, vm.row.namespace, snapshot, volumes)
    verdict = feasibility.evaluate(vm.home, cycle, cluster)
    if not verdict.feasible:
        yield verdict.why.sentence
    if not isinstance(home, NoObject):
        yield from _tainted(pod, home)
    if not hostname_of(vm.home, cluster):
        yield f"node {vm.home} has no label {HOSTNAME}"
    ruled = why_never_required(cycle)
    if ruled and vm.placement.priority_class:
        yield f"only kube-scheduler can tell, and it may evict pods for {vm.placement.priority_class}: {ruled.sentence}"


def _not_served(vm: VM, cluster: Cluster) -> Iterator[str]:
    """Yield each share-manager that does not serve its volume."""
    for volume in vm.row.volumes:
        if volume.together is False and volume.state not in _SERVES:
            yield f"the share-manager of claim {volume.claim} is {volume.state}"
        pod = cluster.get(refs.share_manager_pod(volume.volume or ""))
        conditions = None if isinstance(pod, NoObject) or pod.status is None else pod.status.conditions
        if volume.together is False and any((each.type, each.status) == _NOT_READY for each in conditions or ()):
            yield f"the pod of the share-manager of claim {volume.claim} is not Ready"


def _tainted(pod: Pod, node: Node) -> Iterator[str]:
    """Yield each taint for which the VM would leave the node again soon, soft ones among them."""
    for taint in node.taints:
        if _MEDIK8S in (taint.key or "") or not tolerates(pod.spec.tolerations or (), taint):
            yield f"node {node.metadata.name} has the taint {taint_text(taint)}, so the VM would be moved again soon"
