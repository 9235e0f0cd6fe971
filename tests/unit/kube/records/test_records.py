"""What a cache stores has all that core reads of the object, whatever fields the object has."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.watching import RESOURCES
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.strategies.affinity_shapes import GONE, bend
from support.strategies.strategies import chain, node

from webhook.core.api.longhorn import LonghornNode, ShareManager
from webhook.core.api.meta import NamespacedName
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine, VirtualMachineInstance
from webhook.core.scheduler.cycle_state import TOPOLOGY_LABELS
from webhook.core.view import Kind
from webhook.kube.wire import Decoders, NotJSON

Object = dict[str, Any]
ATTRIBUTES = (
    "migratable",
    "dataLocality",
    "dataEngine",
    "encrypted",
    "shareManagerNodeSelector",
)  # of a volume, those that core reads


def claim_reads(claim: PersistentVolumeClaim) -> tuple[Any, ...]:
    """What core reads of a PersistentVolumeClaim."""
    spec, status = claim.spec, claim.status
    return (
        claim.metadata.namespace,
        claim.metadata.name,
        claim.metadata.deletion_timestamp,
        (spec and spec.access_modes) or [],
        spec and spec.volume_name,
        spec and spec.volume_mode,
        status and status.phase,
    )


def volume_reads(volume: PersistentVolume) -> tuple[Any, ...]:
    """What core reads of a PersistentVolume."""
    spec, csi = volume.spec, volume.spec and volume.spec.csi
    return (
        volume.metadata.name,
        {key: value for key, value in (volume.metadata.labels or {}).items() if key in TOPOLOGY_LABELS},
        csi and (csi.driver or "", csi.volume_handle, *map((csi.volume_attributes or {}).get, ATTRIBUTES)),
        spec and spec.volume_mode,
        spec and spec.node_affinity and spec.node_affinity.required,
        spec and spec.in_tree(),
    )


def manager_reads(manager: ShareManager) -> tuple[Any, ...]:
    """What core reads of a ShareManager."""
    status = manager.status
    return manager.metadata.name, manager.metadata.uid, status and status.owner_id, status and status.state


def node_reads(found: Node) -> tuple[Any, ...]:
    """What core reads of a Node."""
    meta, spec, status = found.metadata, found.spec, found.status
    return (
        meta.name,
        meta.labels or {},
        meta.deletion_timestamp,
        spec and spec.unschedulable,
        (spec and spec.taints) or [],
        bool(status and status.ready),
    )


def longhorn_node_reads(found: LonghornNode) -> tuple[Any, ...]:
    """What core reads of Longhorn's Node."""
    return found.metadata.name, bool(found.status and found.status.ready), found.lacks


def pod_reads(pod: Pod) -> tuple[Any, ...]:
    """What core reads of a share-manager pod."""
    meta = pod.metadata
    return (
        meta.name,
        meta.label("longhorn.io/component"),
        meta.deletion_timestamp,
        pod.spec.node_name,
        pod.status and pod.status.phase,
        pod.status and pod.status.scheduled and pod.status.scheduled.last_transition_time,
    )


def vm_reads(found: VirtualMachine) -> tuple[Any, ...]:
    """What core reads of a VirtualMachine."""
    return found.metadata.namespace, found.metadata.name, found.claims, found.start_failures


def vmi_reads(found: VirtualMachineInstance) -> tuple[Any, ...]:
    """What core reads of a VirtualMachineInstance."""
    meta = found.metadata
    return meta.namespace, meta.name, meta.uid, found.claims, found.virtual_machine, found.node


_PARTS = chain(0, "n1")
_DISKS: Final = {"hotpluggable": ["hot", "disk"], "cdroms": ["cd", "hot"]}
SAMPLES: dict[Kind, tuple[type[Any], Callable[[Any], tuple[Any, ...]], Object, str]] = {
    Kind.PERSISTENT_VOLUME_CLAIM: (
        PersistentVolumeClaim,
        claim_reads,
        _PARTS["claim"],
        "metadata.deletionTimestamp spec spec.accessModes spec.volumeName spec.volumeMode status status.phase",
    ),
    Kind.PERSISTENT_VOLUME: (
        PersistentVolume,
        volume_reads,
        _PARTS["volume"],
        (
            "metadata.labels spec spec.csi spec.csi.driver spec.csi.volumeHandle spec.csi.volumeAttributes "
            "spec.volumeMode spec.nodeAffinity spec.awsElasticBlockStore spec.vsphereVolume"
        ),
    ),
    Kind.SHARE_MANAGER: (ShareManager, manager_reads, _PARTS["manager"], "status status.ownerID status.state"),
    Kind.NODE: (
        Node,
        node_reads,
        node(0),
        "metadata.labels metadata.deletionTimestamp spec spec.unschedulable spec.taints status status.conditions",
    ),
    Kind.LONGHORN_NODE: (LonghornNode, longhorn_node_reads, node(0), "spec status status.conditions"),
    Kind.SHARE_MANAGER_POD: (
        Pod,
        pod_reads,
        _PARTS["pod"],
        "metadata.labels metadata.deletionTimestamp spec.nodeName status status.phase status.conditions",
    ),
    Kind.VIRTUAL_MACHINE: (
        VirtualMachine,
        vm_reads,
        virtual_machine("db", start_failures=2, **_DISKS),
        (
            "spec spec.template spec.template.spec spec.template.spec.volumes spec.template.spec.domain "
            "status status.startFailure status.startFailure.consecutiveFailCount"
        ),
    ),
    Kind.VIRTUAL_MACHINE_INSTANCE: (
        VirtualMachineInstance,
        vmi_reads,
        virtual_machine_instance("db", uid="u-1", node="node-a", **_DISKS),
        "metadata.uid metadata.ownerReferences spec spec.volumes spec.domain status status.nodeName",
    ),
}
READY = {"type": "Ready", "status": "True"}
VALUES = st.sampled_from(
    [
        GONE,
        None,
        "",
        "x",
        "Block",
        5,
        True,
        [],
        {},
        [None],
        [5],
        ["ReadWriteMany", "x"],
        [{}],
        {"a": "b"},
        {"a": None},
        {"migratable": "true", "share": "x"},
        {"migratable": None},
        {"encrypted": "true"},
        {"shareManagerNodeSelector": "storage:true"},
        {"dataLocality": "strict-local", "dataEngine": "v2", "numberOfReplicas": "1"},
        {"longhorn.io/component": "x", "other": "y"},
        {"topology.kubernetes.io/zone": "a__b", "other": "y"},
        {
            "required": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
            }
        },
        [{"key": "k", "value": "", "effect": "NoSchedule"}],
        [{"type": "Ready", "status": "False"}, READY],
        [{"type": "DiskPressure", "status": "True"}, READY],
        [{"type": "NFSClientInstalled", "status": "False"}, READY],
        [{"type": "RequiredPackages", "status": "False", "message": "Missing packages: [nfs-utils cryptsetup x]"}],
        [{"type": None}, {"status": "True"}],
        [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
        [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x"}],
    ]
)


@given(st.data(), st.sampled_from(sorted(SAMPLES)))
def test_what_core_reads_of_a_stored_object_is_what_it_reads_of_the_object(data: st.DataObject, kind: Kind) -> None:
    """Fields absent, null, empty or of a wrong type: what core can read comes out the same, by way of the cache."""
    core_type, reads, sample, paths = SAMPLES[kind]
    bent = copy.deepcopy(sample)
    for path, value in data.draw(st.lists(st.tuples(st.sampled_from(paths.split()), VALUES), max_size=3)):
        try:
            bend(bent, path, value)
        except (AttributeError, TypeError):  # the parent is no longer an object
            continue
    body, resource = json.dumps(bent).encode(), RESOURCES[kind]
    wire = Decoders(resource.wire).object(body)
    try:
        expected = msgspec.json.decode(body, type=core_type)
    except msgspec.ValidationError:
        return  # core could not read it; that the wire does not raise is what is shown
    assert not isinstance(wire, NotJSON)
    key = resource.key_of(wire.metadata)
    assert key == resource.key(NamespacedName(bent["metadata"].get("namespace", ""), bent["metadata"]["name"]))
    assert reads(resource.transform(wire)) == reads(expected)


def test_a_stored_volume_has_the_topology_labels_only() -> None:
    """kube-scheduler and core read zone and region, by their old and their new labels."""
    resource = RESOURCES[Kind.PERSISTENT_VOLUME]
    labels = {**dict.fromkeys(TOPOLOGY_LABELS, "a__b"), "team": "x"}
    body = json.dumps({"metadata": {"name": "pv0", "labels": labels}}).encode()
    built = resource.transform(Decoders(resource.wire).object(body))
    assert built.metadata.labels == dict.fromkeys(TOPOLOGY_LABELS, "a__b")
