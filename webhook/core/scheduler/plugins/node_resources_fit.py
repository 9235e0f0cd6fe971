"""kube-scheduler's NodeResourcesFit plugin (pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest).

Invariant: the plugin does not reject a node that passes here, for the pods that are known. `ignoredResources` in
kube-scheduler's own configuration are not known: the webhook counts them.
"""

from __future__ import annotations

from typing import Final

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.state.node_info import MORE_THAN_ANY, NodeInfo
from webhook.core.scheduler.state.pod_requests import CPU, PODS, Usage

_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MEBIBYTE: Final = 2**20


def why_insufficient(usage: Usage, node: NodeInfo, replicas: int) -> Why | None:
    """Return of which resource the node has too little for the pod, or for the share of each of `replicas`.

    The share of a replica is the pod and the pods on the way to the node (webhook.core.placement.replica_share).
    """
    for reason, others in ((Reason.NO_ROOM, 0), (Reason.REPLICA_SHARE_FULL, replicas - 1)):
        for resource, amount in ((PODS, 1), *usage.requests):
            used, allocatable = node.requested.of(resource), node.allocatable.get(resource, 0)
            if used + amount + others * (amount + node.on_the_way.of(resource)) > allocatable:
                amounts = {"asked": amount, "used": used, "allocatable": allocatable}
                texts = {name: amount_text(resource, each) for name, each in amounts.items()}
                return reason.why(node=node.name, resource=resource, replicas=replicas, **texts)
    return None


def amount_text(resource: str, amount: int) -> str:
    """Return the amount as Kubernetes writes it; `amount` is milli-CPU or whole units."""
    if amount >= MORE_THAN_ANY:
        return "an amount that can't be read"
    if resource == CPU:
        return f"{amount}m"
    if resource.startswith(_IN_BYTES) and amount and amount % _MEBIBYTE == 0:
        return f"{amount // _MEBIBYTE}Mi"
    return str(amount)
