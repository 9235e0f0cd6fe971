"""What a cluster that was read once is counted and indexed by: its pods on their nodes, and its VMs by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import csi_drivers_of
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.replica_share import count_replicas, own_namespace_of
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.objects.kinds import CSI_NODE, NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.objects import ObjectStore


def count_pods(objects: ObjectStore) -> ListedSnapshot | SnapshotUnavailable:
    """Return the snapshot of pods and nodes; SnapshotUnavailable if no node has status.allocatable."""
    nodes = objects.within(NODE, "")
    if not any(node.status and node.status.allocatable for node in nodes.values()):
        return SnapshotUnavailable("no node has status.allocatable")
    pods = list(objects.of(POD).values())
    drivers_of = {key.name: csi_drivers_of(node.spec) for key, node in objects.of(CSI_NODE).items()}
    replicas = count_replicas(pods, own_namespace_of(objects.configuration()))
    return ListedSnapshot(pods, nodes, drivers_of, replicas)


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
