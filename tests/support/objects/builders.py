"""Full Kubernetes objects as plain dicts, from a few keyword arguments.

Every default is what the component in question really writes, so that a kube-apiserver would store the result.
Pure: nothing here reads a file or keeps state, and every call returns a fresh object. A keyword argument that ends in
`**fields` takes Kubernetes' own field names, so that absent, null and empty stay three different things.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from support.objects.builders_longhorn import (  # noqa: F401 - Longhorn's objects are built by the same names
    LONGHORN_API_VERSION,
    LONGHORN_NAMESPACE,
    being_deleted,
    longhorn_node,
    share_manager,
    share_manager_pod,
    volume_attachment,
)
from webhook.core.patch.applied_patch import Written, fingerprint

from webhook.core.api.node_selector import NodeSelectorTerm, pin

Object = dict[str, Any]

NAMESPACE: Final = "vms"
LONGHORN_DRIVER: Final = "driver.longhorn.io"
OPT_IN: Final = "kubevirt-scheduler/co-schedule"
DECISION: Final = "kubevirt-scheduler/decision"
WRITTEN: Final = "kubevirt-scheduler/written"

_OWNER_UID: Final = "82e8dbfd-6679-4ecb-ba20-c3389d04414d"
_REVIEW_UID: Final = "705ab4f5-6393-11e8-b7cc-42010a800002"
_READY_TAINTS: Final = {  # kubernetes pkg/controller/nodelifecycle: the taints that follow a node's Ready condition
    "True": (),
    "False": ("node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"),
    "Unknown": ("node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"),
    None: ("node.kubernetes.io/not-ready:NoSchedule",),  # as registered: no kubelet has posted a condition yet
}
_NOTHING: Final[Mapping[str, str]] = {}
_CORDON_TAINT: Final = "node.kubernetes.io/unschedulable:NoSchedule"


def virt_launcher_pod(
    *,
    opt_in: str | None = "true",
    claims: Sequence[str] = (),
    ephemeral: Sequence[str] = (),
    volumes: Iterable[Object] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str | None = None,
    **spec: Any,
) -> Object:
    """A VM start pod as it arrives at admission: only a generateName. `spec` takes fields of PodSpec."""
    co_schedule = {} if opt_in is None else {OPT_IN: opt_in}
    metadata = {
        "generateName": "virt-launcher-db01-",
        "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": _OWNER_UID, **(labels or {})},
        "annotations": {"kubevirt.io/domain": "db01", **co_schedule, **(annotations or {})},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "name": "db01",
                "uid": _OWNER_UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if namespace is not None:
        metadata["namespace"] = namespace
    disks = [claim_volume(f"disk-{index}", claim) for index, claim in enumerate(claims)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 60,
            "automountServiceAccountToken": False,
            "containers": [{"name": "compute", "image": "quay.io/kubevirt/virt-launcher:v1.9.0"}],
            "volumes": [*disks, *map(ephemeral_volume, ephemeral), *volumes],
            **spec,
        },
    }


def vm_pod(
    name: str,
    *,
    vm: str | None = None,
    namespace: str = NAMESPACE,
    node: str | None = None,
    pinned_to: Sequence[str] = (),
    phase: str | None = None,
    deleting: bool = False,
    created: str | None = None,
    migration_target: bool = False,
    **parts: Any,
) -> Object:
    """A VM's pod as it is in a cluster: named, and on a node or not; `parts` are those of `virt_launcher_pod`.

    Args:
        name: of the pod, virt-launcher-NAME, and of the VirtualMachineInstance where `vm` does not tell it.
        vm: the VirtualMachineInstance: pods of one VM tell the same.
        namespace: of the VM.
        node: where the pod is; None while it is not scheduled.
        pinned_to: the nodes that its required affinity leaves.
        phase: Running where it is not told for a pod on a node, else Pending.
        deleting: whether it is being deleted.
        created: its creation time; an API server sets its own.
        migration_target: whether a live migration made it.
    """
    uid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}/{vm or name}"))
    migration = {"kubevirt.io/migrationJobUID": _REVIEW_UID} if migration_target else {}
    pod = virt_launcher_pod(namespace=namespace, **parts)
    meta, spec = pod["metadata"], pod["spec"]
    del meta["generateName"]
    meta["name"] = f"virt-launcher-{name}"
    meta["labels"] |= {"kubevirt.io/created-by": uid} | migration
    meta["ownerReferences"][0] |= {"name": vm or name, "uid": uid}
    meta |= {"creationTimestamp": created} if created else {}
    meta |= being_deleted() if deleting else {}
    spec |= {"nodeName": node} if node else {}
    spec |= {"affinity": node_affinity(required=map(on_node, pinned_to))} if pinned_to else {}
    return {**pod, "status": {"phase": phase or ("Running" if node else "Pending")}}


def claim_volume(name: str, claim: str) -> Object:
    """A pod's volume that stands for a PersistentVolumeClaim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def ephemeral_volume(name: str) -> Object:
    """A generic ephemeral volume: its claim is made after the pod, and named for it."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def on_node(name: str) -> Object:
    """A NodeSelectorTerm that holds for exactly this node."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def node_affinity(*, required: Iterable[Object] = (), preferred: Mapping[str, int] | None = None) -> Object:
    """A spec.affinity that requires any of some terms and prefers nodes by name and weight."""
    inner: Object = {}
    if terms := list(required):
        inner["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if preferred:
        inner["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": on_node(name)} for name, weight in preferred.items()
        ]
    return {"nodeAffinity": inner}


def written(node: str) -> Mapping[str, str]:
    """The annotations that the webhook leaves on a pod that it pins to a node, and that had no affinity."""
    term = NodeSelectorTerm(match_fields=[pin(node)])
    record = Written(nodes=(node,), terms=((0, fingerprint(term)),), preferred=((node, 100, 1),))
    return {DECISION: f"required on {node}: ShareManagerPod: for a test", WRITTEN: to_annotation(record)}


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
) -> Object:
    """A bound PersistentVolume; `driver` None makes it an NFS one, `terms` is its required node affinity."""
    source: Object = {"nfs": {"server": "nas.example.com", "path": "/vms"}}
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


def review(
    pod: Object | None,
    *,
    uid: str = _REVIEW_UID,
    operation: str = "CREATE",
    kind: Mapping[str, str] | None = None,
    namespace: str | None = NAMESPACE,
    **request: Any,
) -> Object:
    """The AdmissionReview v1 that kube-apiserver sends about a pod; `request` takes fields of AdmissionRequest."""
    kind = {"group": "", "version": "v1", "kind": "Pod"} if kind is None else dict(kind)
    resource = {**kind, "resource": f"{kind.get('kind', '').lower()}s"}
    resource.pop("kind", None)
    asked: Object = {
        "uid": uid,
        "kind": kind,
        "resource": resource,
        "requestKind": dict(kind),
        "requestResource": dict(resource),
        "operation": operation,
        "userInfo": {"username": "system:serviceaccount:kubevirt:kubevirt-controller"},
        "object": None if operation == "DELETE" else pod,
        "oldObject": None if operation in ("CREATE", "CONNECT") else pod,
        "dryRun": False,
        "options": None,
    }
    if namespace is not None:
        asked["namespace"] = namespace
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**asked, **request}}
