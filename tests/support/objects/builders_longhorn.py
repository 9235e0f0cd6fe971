"""Longhorn's objects as plain dicts; `builders` says how they are made, and tests import it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

Object = dict[str, Any]

LONGHORN_NAMESPACE: Final = "longhorn-system"
LONGHORN_API_VERSION: Final = "longhorn.io/v1beta2"

_LONG_AGO: Final = "2026-01-02T03:04:05Z"
_KEEPER: Final = "tests.kubevirt-coschedule/keep"  # a finalizer: what is being deleted is still there
SHARE_MANAGER_UID: Final = "5b1c5a2e-7c1b-4b0e-9d68-0d5a4f1f3c77"
_INSTANCE_MANAGER_IMAGE: Final = "longhornio/longhorn-instance-manager:v1.12.1"
_SHARE_MANAGER_IMAGE: Final = "longhornio/longhorn-share-manager:v1.12.1"
_HOST_PATHS: Final = {"host-dev": "/dev", "host-sys": "/sys", "host-proc": "/proc", "lib-modules": "/lib/modules"}
_DEFAULT_TOLERATIONS: Final = (  # that kube-apiserver adds to a pod before it asks a mutating webhook
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
)


def longhorn_node(
    name: str,
    *,
    ready: str | None = "True",
    conditions: Mapping[str, str] | None = None,
    namespace: str = LONGHORN_NAMESPACE,
) -> Object:
    """Longhorn's object for a Kubernetes node.

    `ready` is the status of its Ready condition, None for none yet. `conditions` are those that are False, each as
    `REASON: message` (longhorn-manager controller/monitor/environment_check_monitor.go).
    """
    shown = [{"type": "Schedulable", "status": "True"}]
    for type_ in ("RequiredPackages", "KernelModulesLoaded", "NFSClientInstalled"):
        reason, _, message = (conditions or {}).get(type_, "").partition(": ")
        shown.append({"type": type_, "status": str(not reason), "reason": reason, "message": message})
    if ready is not None:
        shown.append({"type": "Ready", "status": ready})
    return {
        "apiVersion": LONGHORN_API_VERSION,
        "kind": "Node",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"name": name, "allowScheduling": True},
        "status": {"conditions": shown},
    }


def instance_manager_pod(
    node: str, *, phase: str = "Running", deleting: bool = False, namespace: str = LONGHORN_NAMESPACE
) -> Object:
    """The pod that runs engines and replicas on a node (longhorn-manager instance_manager_controller.go)."""
    labels = {
        "longhorn.io/component": "instance-manager",
        "longhorn.io/instance-manager-type": "aio",
        "longhorn.io/managed-by": "longhorn-manager",
        "longhorn.io/node": node,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"instance-manager-{node}",
            "namespace": namespace,
            "labels": labels,
            **(being_deleted() if deleting else {}),
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{"name": "instance-manager", "image": _INSTANCE_MANAGER_IMAGE}],
        },
        "status": {"phase": phase},
    }


def share_manager(volume: str, *, namespace: str = LONGHORN_NAMESPACE, **status: Any) -> Object:
    """Longhorn's ShareManager of a volume; `status` takes fields of its status: state, ownerID, endpoint."""
    return {
        "apiVersion": LONGHORN_API_VERSION,
        "kind": "ShareManager",
        "metadata": {
            "name": volume,
            "namespace": namespace,
            "uid": SHARE_MANAGER_UID,
            "labels": {"longhornvolume": volume},
        },
        "spec": {"image": _SHARE_MANAGER_IMAGE},
        "status": status,
    }


def share_manager_pod(
    volume: str,
    *,
    phase: str | None = "Running",
    deleting: bool = False,
    labels: Mapping[str, str] | None = None,
    namespace: str = LONGHORN_NAMESPACE,
    data_engine: str = "v1",
    **spec: Any,
) -> Object:
    """The NFS server's pod of a Longhorn volume; `spec` takes fields of PodSpec, in particular nodeName.

    As longhorn-manager's share_manager_controller.go, createPodManifest, makes it, on a cluster with no taint
    tolerations, node selector or priority class of Longhorn's own; `phase` is None at its CREATE.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"share-manager-{volume}",
            "namespace": namespace,
            "labels": {
                "longhorn.io/component": "share-manager",
                "longhorn.io/share-manager": volume,
                "longhorn.io/share-manager-image": "sm-9f3a1c52",
                "longhorn.io/managed-by": "longhorn-manager",
                **(labels or {}),
            },
            "annotations": {"longhorn.io/last-applied-tolerations": "[]"},
            "ownerReferences": [
                {
                    "apiVersion": LONGHORN_API_VERSION,
                    "kind": "ShareManager",
                    "name": volume,
                    "uid": SHARE_MANAGER_UID,
                    "controller": True,
                }
            ],
            **(being_deleted() if deleting else {}),
        },
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": "longhorn-service-account",
            "containers": [_nfs_server(volume, namespace, data_engine)],
            "volumes": [{"name": name, "hostPath": {"path": path}} for name, path in _HOST_PATHS.items()],
            "tolerations": [dict(toleration) for toleration in _DEFAULT_TOLERATIONS],
            **spec,
        },
        "status": {} if phase is None else {"phase": phase},
    }


def _nfs_server(volume: str, namespace: str, data_engine: str) -> Object:
    """Return the container, which requests no resources."""
    environment = {
        "FAST_FAILOVER": "false",
        "LEASE_LIFETIME": "60",
        "GRACE_PERIOD": "90",
        "POD_NAME": f"share-manager-{volume}",
        "POD_NAMESPACE": namespace,
    }
    mounts = {**_HOST_PATHS, "host-proc": "/host/proc"}
    return {
        "name": "share-manager",
        "image": _SHARE_MANAGER_IMAGE,
        "args": ["--debug", "daemon", "--volume", volume, "--data-engine", data_engine, "--fs", "ext4"],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "readinessProbe": {
            "exec": {"command": ["cat", "/var/run/ganesha.pid"]},
            "initialDelaySeconds": 3,
            "timeoutSeconds": 4,
            "periodSeconds": 5,
            "failureThreshold": 3,
        },
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": name, "mountPath": path, **({"readOnly": True} if name == "lib-modules" else {})}
            for name, path in mounts.items()
        ],
    }


def volume_attachment(
    volume: str, tickets: Iterable[tuple[str, str]], *, namespace: str = LONGHORN_NAMESPACE
) -> Object:
    """Longhorn's VolumeAttachment: who wants the volume attached where, as (type of ticket, node)."""
    made = {
        f"{type_}-{index}": {
            "id": f"{type_}-{index}",
            "type": type_,
            "nodeID": node_id,
            "parameters": {"disableFrontend": "false"},
            "generation": 0,
        }
        for index, (type_, node_id) in enumerate(tickets)
    }
    return {
        "apiVersion": LONGHORN_API_VERSION,
        "kind": "VolumeAttachment",
        "metadata": {"name": volume, "namespace": namespace, "labels": {"longhornvolume": volume}},
        "spec": {"attachmentTickets": made, "volume": volume},
        "status": {"attachmentTicketStatuses": {}},
    }


def being_deleted() -> Object:
    """Return the metadata of an object that is being deleted and still exists because of a finalizer."""
    return {"deletionTimestamp": _LONG_AGO, "deletionGracePeriodSeconds": 0, "finalizers": [_KEEPER]}
