"""What a cluster that was read once is counted and indexed by: its pods on their nodes, and its VMs by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from sys import maxsize

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName, OwnerReference
from webhook.core.api.node import csi_drivers_of
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot, NodesMax
from webhook.core.observe.past_decision import past_decision
from webhook.core.placement.replica_share import count_replicas, own_namespace_of
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.core.view import ClusterView, NoObject
from webhook.objects.kinds import CSI_NODE, NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.objects import ObjectStore


def count_pods(objects: ObjectStore, nodes_max: NodesMax) -> ListedSnapshot | SnapshotUnavailable:
    """Return the snapshot of pods and nodes; SnapshotUnavailable if no node has status.allocatable."""
    nodes = objects.within(NODE, "")
    if not any(node.status and node.status.allocatable for node in nodes.values()):
        return SnapshotUnavailable("no node has status.allocatable")
    pods = list(objects.of(POD).values())
    drivers_of = {key.name: csi_drivers_of(node.spec) for key, node in objects.of(CSI_NODE).items()}
    replicas = count_replicas(pods, own_namespace_of(objects.configuration()))
    return ListedSnapshot(pods, nodes, drivers_of, replicas, nodes_max)


def nodes_max(view: ClusterView, longhorn_namespace: str, pod: Pod) -> int:
    """Return on how many nodes an unbound pod may count, by the rule of webhook.kube.cache.caches."""
    if not past_decision(pod).wrote_terms:
        return 0
    namespace = pod.metadata.namespace or "default"
    if pod.metadata.label(LABEL_APP) != VIRT_LAUNCHER:
        return maxsize if namespace == longhorn_namespace else 0
    owner = kubevirt.owner(pod) or OwnerReference()
    vmi = view.get(refs.virtual_machine_instance(NamespacedName(namespace, owner.name or "")))
    if isinstance(vmi, NoObject):
        return maxsize if vmi is NoObject.UNAVAILABLE else 0
    return 1 + len(vmi.claims) if vmi.metadata.uid == owner.uid else 0


def vms_by_claim(objects: ObjectStore) -> Mapping[NamespacedName, set[str]]:
    """Return the names of the VMs that name each claim."""
    found: dict[NamespacedName, set[str]] = defaultdict(set)
    for key, vm in objects.of(VIRTUAL_MACHINE).items():
        for claim in vm.claims:
            found[NamespacedName(key.namespace, claim.name)].add(key.name)
    for key, vmi in objects.of(VIRTUAL_MACHINE_INSTANCE).items():
        for claim in vmi.claims:
            found[NamespacedName(key.namespace, claim.name)].add(vmi.virtual_machine or key.name)
    return found
