"""What a cluster that was read once is counted and indexed by: its pods on their nodes, and who uses its volumes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice
from sys import maxsize

from msgspec import Struct

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import NamespacedName, OwnerReference
from webhook.core.api.node import csi_drivers_of
from webhook.core.api.pod import Pod, claims_of
from webhook.core.api.storage import PersistentVolume, claim_of
from webhook.core.listed_snapshot import ListedSnapshot, NodesMax
from webhook.core.observe.past_decision import past_decision
from webhook.core.placement.replica_share import count_replicas, own_namespace_of
from webhook.core.scheduler.cache import SnapshotUnavailable
from webhook.core.view import USERS_MAX, ClusterView, NoObject, VolumeUsers
from webhook.objects.kinds import CSI_NODE, NODE, PERSISTENT_VOLUME, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
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


class UserIndex(Struct, frozen=True):
    """Who uses the volumes of a cluster.

    Attributes:
        volumes: the PersistentVolumes of Longhorn's driver, by CSI volume handle.
        vms: the names of the VMs that name a claim, by claim.
        pods: the unfinished pods that have a claim, by claim: name -> VirtualMachineInstance, as in VolumeUsers.
    """

    volumes: Mapping[str, list[PersistentVolume]]
    vms: Mapping[NamespacedName, set[str]]
    pods: Mapping[NamespacedName, dict[str, str]]

    def users_of(self, volume: str, claim: NamespacedName, unknown: str) -> VolumeUsers:
        """Return who uses this volume by way of the claim; `unknown` is why there can be more."""
        return VolumeUsers(
            [found.metadata.name or "" for found in self.volumes.get(volume, ())],
            sorted(self.vms.get(claim, ()))[:USERS_MAX],
            dict(islice(self.pods.get(claim, {}).items(), USERS_MAX)),
            unknown,
        )

    def claims_of(self, volume: str) -> list[NamespacedName]:
        """Return the claims of the PersistentVolumes that have this CSI volume handle."""
        return [claim for found in self.volumes.get(volume, ()) if (claim := claim_of(found, volume))]


def index_users(objects: ObjectStore) -> UserIndex:
    """Return who uses the volumes of these objects."""
    volumes: dict[str, list[PersistentVolume]] = defaultdict(list)
    for volume in objects.of(PERSISTENT_VOLUME).values():
        if volume.longhorn_csi and volume.longhorn_csi.volume_handle:
            volumes[volume.longhorn_csi.volume_handle].append(volume)
    vms: dict[NamespacedName, set[str]] = defaultdict(set)
    for key, vm in objects.of(VIRTUAL_MACHINE).items():
        for claim in vm.claims:
            vms[NamespacedName(key.namespace, claim.name)].add(key.name)
    for key, vmi in objects.of(VIRTUAL_MACHINE_INSTANCE).items():
        for claim in vmi.claims:
            vms[NamespacedName(key.namespace, claim.name)].add(vmi.virtual_machine or key.name)
    pods: dict[NamespacedName, dict[str, str]] = defaultdict(dict)
    for key, pod in objects.of(POD).items():
        names = [] if kubevirt.is_finished(pod) else list(claims_of(pod))
        for name in names:
            pods[NamespacedName(key.namespace, name)][key.name] = _vmi_of(pod, key.namespace, objects)
    return UserIndex(volumes, vms, pods)


def _vmi_of(pod: Pod, namespace: str, objects: ObjectStore) -> str:
    """Return the VirtualMachineInstance of a virt-launcher pod, or of the one that owns an attachment pod."""
    virt_launcher: Pod | None = pod
    if pod.metadata.label(kubevirt.LABEL_APP) == kubevirt.HOTPLUG_DISK:
        names = (each.name or "" for each in pod.metadata.owner_references or () if each.kind == POD.kind)
        virt_launcher = objects.get(POD, next(names, ""), namespace)
    if virt_launcher is None or virt_launcher.metadata.label(kubevirt.LABEL_APP) != kubevirt.VIRT_LAUNCHER:
        return ""
    owner = kubevirt.owner(virt_launcher)
    return (owner and owner.name) or ""
