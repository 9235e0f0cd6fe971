"""Whether the node of the share-managers takes a VM, and the pods that KubeVirt can make of the VM next.

These are the target of a migration, and the pod of the VM's next start. Upstream:
pkg/virt-controller/watch/migration/migration.go (createTargetPod, prepareNodeSelectorForHostCpuModel) and
pkg/virt-controller/services/template.go. The target comes from the VirtualMachineInstance as it is now, and the node
that it leaves adds its CPU. A start has nothing that a migration added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api.kubevirt import (
    CPU_FEATURE,
    CPU_VENDOR,
    HOSTNAME,
    MIGRATION_CPU_MODEL,
    is_kubevirts,
    start_node_selector,
)
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.evidence import share_managers
from webhook.core.patch.decision_patch import as_created
from webhook.core.placement import feasibility
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState, why_never_required
from webhook.core.scheduler.node_rules import taint_text, tolerates
from webhook.core.view import NoObject
from webhook.objects.cluster import Cluster
from webhook.reunite.vm import VM
from webhook.reunite.waits import NotYet, Rule

_HOST_MODEL: Final = ("", "host-model")  # KubeVirt writes its default into each VMI
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
        return NotYet(Rule.NOT_PLACEABLE, f"pod {vm.row.pod} is not there any more")
    why = next(_against(vm, pod, cluster), "")
    if not why:
        return None
    start = start_pod(vm, vm.pod)
    if not next(_against(vm, start, cluster), ""):
        why += f"; its next start can bring it there: {vm.restart}"
    return NotYet(Rule.NOT_PLACEABLE, why)


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
    if not vm.hostname_at_home:
        yield f"node {vm.home} has no label {HOSTNAME} of its own"
    ruled = why_never_required(cycle)
    if ruled and vm.spec.priority_class_name:
        yield f"only kube-scheduler can tell, and it may evict pods for {vm.spec.priority_class_name}: {ruled.sentence}"


def _not_served(vm: VM, cluster: Cluster) -> Iterator[str]:
    """Yield each share-manager that does not serve its volume."""
    for volume in vm.row.volumes:
        if volume.together is False and volume.share_manager not in _SERVES:
            yield f"the share-manager of claim {volume.claim} is {volume.share_manager}"
        pod = cluster.get(refs.share_manager_pod(volume.volume or ""))
        conditions = None if isinstance(pod, NoObject) or pod.status is None else pod.status.conditions
        if volume.together is False and any((each.type, each.status) == _NOT_READY for each in conditions or ()):
            yield f"the pod of the share-manager of claim {volume.claim} is not Ready"


def _tainted(pod: Pod, node: Node) -> Iterator[str]:
    """Yield each taint for which the VM would leave the node again soon, soft ones among them."""
    for taint in node.taints:
        if not tolerates(pod.spec.tolerations or (), taint):
            yield f"node {node.metadata.name} has the taint {taint_text(taint)}, so the VM would be moved again soon"


_OF_NODE: Final = {
    "host-model-cpu.node.kubevirt.io/": MIGRATION_CPU_MODEL,
    "host-model-required-features.node.kubevirt.io/": CPU_FEATURE,
}
_BY_KUBERNETES: Final = "node.kubernetes.io/"  # tolerations that admission plugins add to every pod


def start_pod(vm: VM, pod: Pod) -> Pod:
    """Return the pod of the VM's next start, before the webhook is asked."""
    return _with_selector(vm, pod, start_node_selector(pod))


def target_pod(vm: VM, pod: Pod, source: Node | None) -> Pod:
    """Return the target pod of a migration from the node `source`, without the node that the migration names.

    KubeVirt before 1.8 adds no CPU vendor. No migration to another vendor succeeds there either.
    """
    selector = dict(pod.spec.node_selector or {})
    labels = (source.metadata.labels if source else None) or {}
    cpu = vm.spec.domain.cpu if vm.spec.domain else None
    is_host_model = ((cpu.model if cpu else None) or "") in _HOST_MODEL
    if is_host_model and not any(key.startswith((MIGRATION_CPU_MODEL, CPU_FEATURE)) for key in selector):
        for old, new in _OF_NODE.items():
            selector |= {key.replace(old, new): value for key, value in labels.items() if key.startswith(old)}
    if not any(key.startswith(CPU_VENDOR) for key in selector):
        selector |= {key: "true" for key in labels if key.startswith(CPU_VENDOR)}
    return _with_selector(vm, pod, selector)


def _with_selector(vm: VM, pod: Pod, selector: Mapping[str, str]) -> Pod:
    """Return the pod as KubeVirt makes it, with KubeVirt's own part of this selector, and the VMI's rules."""
    before, now = as_created(pod), vm.spec
    own = {key: value for key, value in selector.items() if is_kubevirts(key)}
    wanted = now.tolerations or ()
    added = [each for each in before.spec.tolerations or () if (each.key or "").startswith(_BY_KUBERNETES)]
    spec = replace(
        before.spec,
        node_selector={**own, **(now.node_selector or {})},
        affinity=now.affinity,
        tolerations=[*wanted, *(each for each in added if each not in wanted)],
    )
    return replace(before, spec=spec)
