"""Pods and drivers that take something of a node, as plain dicts; `builders` says how they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from support.objects.builders import NAMESPACE, Object, being_deleted, claim_volume, node_affinity, on_node

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(
    name: str,
    *,
    node: str | None = None,
    pinned_to: Sequence[str] = (),
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    requests: Mapping[str, str] | None = None,
    host_port: int | None = None,
    away: Iterable[Object] = (),
    phase: str | None = None,
    deleting: bool = False,
    claims: Sequence[str] = (),
    attaches: str | None = None,
) -> Object:
    """A pod of somebody else's, or the one by which KubeVirt attaches hotpluggable claims.

    Args:
        name: of the pod.
        node: where it is; None while it is not scheduled.
        pinned_to: the nodes that its required affinity leaves.
        namespace: of the pod.
        labels: of the pod.
        requests: of its container.
        host_port: the port of the node that it takes.
        away: terms of its required anti-affinity.
        phase: Running where it is not told for a pod on a node, else Pending.
        deleting: whether it is being deleted.
        claims: that it has.
        attaches: the virt-launcher pod that owns it, for KubeVirt's attachment pod.
    """
    affinity = node_affinity(required=map(on_node, pinned_to)) if pinned_to else {}
    if terms := list(away):
        affinity["podAntiAffinity"] = {_REQUIRED: terms}
    spec: Object = {
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "example.com/main"}],
    }
    spec |= {"nodeName": node} if node else {}
    spec |= {"affinity": affinity} if affinity else {}
    if claims:
        spec["volumes"] = [claim_volume(f"v-{each}", each) for each in claims]
    metadata: Object = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if attaches:
        metadata["labels"]["kubevirt.io"] = "hotplug-disk"
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": attaches, "uid": "launcher"}]
    return asking(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata | (being_deleted() if deleting else {}),
            "spec": spec,
            "status": {"phase": phase or ("Running" if node else "Pending")},
        },
        requests,
        host_port,
    )


def asking(pod: Object, requests: Mapping[str, str] | None = None, host_port: int | None = None) -> Object:
    """The pod, whose first container asks for this. Of a resource with a domain the limit has to be the same."""
    first, *others = pod["spec"]["containers"]
    if requests:
        limits = {name: amount for name, amount in requests.items() if "/" in name}
        first = first | {"resources": {"requests": dict(requests), **({"limits": limits} if limits else {})}}
    if host_port:
        first = first | {"ports": [{"containerPort": host_port, "hostPort": host_port}]}
    return {**pod, "spec": {**pod["spec"], "containers": [first, *others]}}


def csi_node(name: str, limits: Mapping[str, int | None]) -> Object:
    """The CSI drivers of a node, each with the number of volumes that it can attach there; None for no limit."""
    drivers: list[dict[str, Any]] = [
        {"name": driver, "nodeID": name, "topologyKeys": []}
        | ({} if most is None else {"allocatable": {"count": most}})
        for driver, most in limits.items()
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def webhook_pod(
    *args: str, name: str = "w", namespace: str = "kubevirt-coschedule", phase: str = "Running", **container: Any
) -> Object:
    """A pod of the webhook with these arguments of `serve`."""
    labels = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
    meta = {"name": name, "namespace": namespace, "labels": labels}
    spec = {"containers": [{"name": "proxy"}, {"name": "webhook", "args": ["serve", *args], **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}}
