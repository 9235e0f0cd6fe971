"""Nodes, claims and PersistentVolumes as plain dicts; `builders` says how they are made, and tests import it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from support.objects.builders_longhorn import Object, being_deleted

NAMESPACE: Final = "vms"
LONGHORN_DRIVER: Final = "driver.longhorn.io"

_READY_TAINTS: Final = {  # kubernetes pkg/controller/nodelifecycle: the taints that follow a node's Ready condition
    "True": (),
    "False": ("node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"),
    "Unknown": ("node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"),
    None: ("node.kubernetes.io/not-ready:NoSchedule",),  # as registered: no kubelet has posted a condition yet
}
_NOTHING: Final[Mapping[str, str]] = {}
_CORDON_TAINT: Final = "node.kubernetes.io/unschedulable:NoSchedule"


def persistent_volume_claim(
    name: str,
    *,
    namespace: str = NAMESPACE,
    volume_name: str | None = None,
    access_modes: Sequence[str] = ("ReadWriteMany",),
    volume_mode: str = "Filesystem",
    phase: str | None = None,
) -> Object:
    """A claim, bound to the PersistentVolume `volume_name` where there is one; `phase` only where it differs."""
    metadata: Object = {"name": name, "namespace": namespace}
    spec: Object = {
        "accessModes": list(access_modes),
        "resources": {"requests": {"storage": "10Gi"}},
        "storageClassName": "longhorn",
        "volumeMode": volume_mode,
    }
    status: Object = {"phase": phase or ("Bound" if volume_name else "Pending")}
    if volume_name:
        # kube-scheduler takes a claim as bound by this annotation (component-helpers storage/volume/pv_helpers.go).
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        spec["volumeName"] = volume_name
        status |= {"accessModes": list(access_modes), "capacity": {"storage": "10Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def persistent_volume(
    name: str,
    *,
    claim: str,
    namespace: str = NAMESPACE,
    handle: str | None = None,
    driver: str | None = LONGHORN_DRIVER,
    attributes: Mapping[str, str] | None = None,
    access_modes: Sequence[str] = ("ReadWriteMany",),
    volume_mode: str = "Filesystem",
    terms: Sequence[Object] | None = None,
    labels: Mapping[str, str] | None = None,
    source: Object | None = None,
) -> Object:
    """A bound PersistentVolume; `terms` is its required node affinity.

    `driver` None makes it one of `source`, by default an NFS one.
    """
    source = source or {"nfs": {"server": "nas.example.com", "path": "/vms"}}
    if driver is not None:
        source = {"csi": {"driver": driver, "volumeHandle": handle or name, "volumeAttributes": dict(attributes or {})}}
    affinity = {} if terms is None else {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "accessModes": list(access_modes),
            "capacity": {"storage": "10Gi"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace,
                "name": claim,
            },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "longhorn",
            "volumeMode": volume_mode,
            **source,
            **affinity,
        },
        "status": {"phase": "Bound"},
    }


def taint(text: str) -> Object:
    """`key=value:Effect` or `key:Effect`, as kubectl writes a taint."""
    rest, _, effect = text.rpartition(":")
    key, equals, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if equals else {})}


def node(
    name: str,
    *,
    ready: str | None = "True",
    cordoned: bool = False,
    deleting: bool = False,
    taints: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = _NOTHING,
) -> Object:
    """A Kubernetes node that KubeVirt may use, with the taints that the node controllers add to an unhealthy one.

    `ready` is the status of its Ready condition, None where no kubelet has posted one. The hostname label differs
    from the name, as it may: nothing should match by it. It has plenty of everything; `allocatable` tells what differs,
    and None that it tells nothing of what it has.
    """
    metadata: Object = {
        "name": name,
        "labels": {
            "kubernetes.io/hostname": f"host-{name}",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubevirt.io/schedulable": "true",
            "machine-type.node.kubevirt.io/q35": "true",
            **(labels or {}),
        },
        **(being_deleted() if deleting else {}),
    }
    spec: Object = {"unschedulable": True} if cordoned else {}
    if all_taints := [*taints, *_READY_TAINTS[ready], *([_CORDON_TAINT] if cordoned else [])]:
        spec["taints"] = [taint(text) for text in all_taints]
    amounts = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
    amounts |= {f"devices.kubevirt.io/{device}": "1000" for device in ("kvm", "tun", "vhost-net")}
    conditions = [{"type": "MemoryPressure", "status": "False"}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    status: Object = {"conditions": conditions}
    if allocatable is not None:  # without it the API server would take the capacity for it
        status |= {"capacity": amounts, "allocatable": {**amounts, **allocatable}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def labeled_namespace(name: str = NAMESPACE, label: str | None = "true") -> Object:
    """A Namespace whose label kubevirt-scheduler/co-schedule has this value; None for a Namespace without it."""
    labels = {"kubernetes.io/metadata.name": name} | (
        {} if label is None else {"kubevirt-scheduler/co-schedule": label}
    )
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def cluster_autoscaler_status(namespace: str = "kube-system", status: str = "autoscalerStatus: Running") -> Object:
    """The ConfigMap that cluster-autoscaler rewrites every 10 s with another `status`."""
    metadata = {"name": "cluster-autoscaler-status", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": status}}
