"""Pods and AdmissionReviews as plain dicts, from a few keyword arguments. Tests take the other objects from here, too.

Every default is what the component in question really writes, so that a kube-apiserver would store the result. Every
call returns a fresh object. A keyword argument that ends in `**fields` takes Kubernetes' own field names, so that
absent, null and empty stay three different values.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from support.objects.builders_cluster import (  # noqa: F401 - tests take all objects from this module
    LONGHORN_DRIVER,
    NAMESPACE,
    cluster_autoscaler_status,
    labeled_namespace,
    node,
    persistent_volume,
    persistent_volume_claim,
    taint,
)
from support.objects.builders_longhorn import (  # noqa: F401 - tests take all objects from this module
    LONGHORN_API_VERSION,
    LONGHORN_NAMESPACE,
    SHARE_MANAGER_UID,
    Object,
    being_deleted,
    instance_manager_pod,
    longhorn_node,
    share_manager,
    share_manager_pod,
    volume_attachment,
)

from webhook.core.patch.applied_patch import AppliedPatch, to_annotation

OPT_IN: Final = "kubevirt-scheduler/co-schedule"
DECISION: Final = "kubevirt-scheduler/decision"
WRITTEN: Final = "kubevirt-scheduler/written"
NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"

OWNER_UID: Final = "82e8dbfd-6679-4ecb-ba20-c3389d04414d"
"""Of the VirtualMachineInstance db01 that owns a pod of `virt_launcher_pod`."""
_REVIEW_UID: Final = "705ab4f5-6393-11e8-b7cc-42010a800002"


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
        "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": OWNER_UID, **(labels or {})},
        "annotations": {"kubevirt.io/domain": "db01", **co_schedule, **(annotations or {})},
        "ownerReferences": [
            {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "name": "db01",
                "uid": OWNER_UID,
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
    node: str | None = None,  # noqa: F811 - the function of this name is for other modules
    pinned_to: Sequence[str] = (),
    phase: str | None = None,
    deleting: bool = False,
    created: str | None = None,
    migration_target: bool = False,
    uid: str | None = None,
    decided: str | None = None,
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
        uid: of the VirtualMachineInstance; where it is not told, one that follows from its name.
        decided: what the webhook's record in the pod says; None for no record.
    """
    uid = uid or vmi_uid(vm or name, namespace)
    migration = {"kubevirt.io/migrationJobUID": _REVIEW_UID} if migration_target else {}
    pod = virt_launcher_pod(namespace=namespace, **parts)
    meta, spec = pod["metadata"], pod["spec"]
    del meta["generateName"]
    meta["name"] = f"virt-launcher-{name}"
    meta["labels"] |= {"kubevirt.io/created-by": uid} | migration
    meta["ownerReferences"][0] |= {"name": vm or name, "uid": uid}
    meta |= {"creationTimestamp": created} if created else {}
    meta |= being_deleted() if deleting else {}
    if decided:
        meta["annotations"] = {**(meta.get("annotations") or {}), **recorded(decided, owner=uid)}
    spec |= {"nodeName": node} if node else {}
    spec |= {"affinity": node_affinity(required=map(on_node, pinned_to))} if pinned_to else {}
    return {**pod, "status": {"phase": phase or ("Running" if node else "Pending")}}


def vmi_uid(name: str, namespace: str = NAMESPACE) -> str:
    """The uid of the VirtualMachineInstance of a `vm_pod`, where it is not told."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}/{name}"))


def claim_volume(name: str, claim: str) -> Object:
    """Return a pod's volume for a PersistentVolumeClaim."""
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def ephemeral_volume(name: str) -> Object:
    """Return a generic ephemeral volume: its claim is created after the pod, and has a name from the pod's."""
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def on_node(name: str) -> Object:
    """Return a NodeSelectorTerm that only this node matches."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}


def node_affinity(*, required: Iterable[Object] = (), preferred: Mapping[str, int] | None = None) -> Object:
    """Return a spec.affinity that requires any of some terms, and prefers nodes by name and weight."""
    inner: Object = {}
    if terms := list(required):
        inner["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if preferred:
        inner["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": on_node(name)} for name, weight in preferred.items()
        ]
    return {"nodeAffinity": inner}


def written(name: str) -> Mapping[str, str]:
    """Return the annotations that the webhook writes on a pod without an affinity that it pins to a node."""
    record = AppliedPatch(
        nodes=(name,), narrowed=1, preferred=((name, 100, 1),), owner=OWNER_UID, decided="required", on=(name,)
    )
    return {DECISION: f"required on {name}: ShareManagerPod: for a test", WRITTEN: to_annotation(record)}


def recorded(decided: str, *on: str, because: str = "", more: int = 0, owner: str = OWNER_UID) -> Mapping[str, str]:
    """Return the annotation that records a decision for a pod of this owner."""
    reason, _, sentence = because.partition(": ")
    record = AppliedPatch(owner=owner, decided=decided, on=on, more=more, reason=reason, because=sentence)
    return {WRITTEN: to_annotation(record)}


def review(
    pod: Object | None,
    *,
    uid: str = _REVIEW_UID,
    operation: str = "CREATE",
    kind: Mapping[str, str] | None = None,
    namespace: str | None = NAMESPACE,
    **request: Any,
) -> Object:
    """Return the AdmissionReview v1 that kube-apiserver sends for a pod; `request` takes fields of AdmissionRequest."""
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
