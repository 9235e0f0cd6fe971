"""What one replica of the webhook may give away of a node while other replicas decide at the same moment.

Only a pod that may run on one node alone can be stranded. It must find enough there, whatever pods come before it.
But a replica can't see yet what other replicas decide at this moment. Therefore:

=======================================  ===============================  =================================
what the pods of the node leave free     no pod is on the way to it       a pod is on the way to it, or a
                                         (see `NodeInfo.on_the_way`)      VM that may only run there waits
=======================================  ===============================  =================================
is enough for the share of each replica  the VM may be pinned             the VM may prefer the node [1]_
is not enough for all shares; perhaps    the VM may prefer the node       neither
not even for this VM
=======================================  ===============================  =================================

.. [1] Beside VMs that only wait, which have their places, it may be pinned.

A replica's share is this pod and the pods that are on the way to the node. There must be enough for as many shares as
there are replicas, beside all pods that count on the node. If each replica keeps to its share, all together give away
no more than there is. A pod on the way counts in the share although a watch has shown it here: another replica may have
used its own share before its watch showed that pod. A preference beyond the share could take the resources of a pinned
VM. Under the assumptions of docs/concepts/full-nodes.md no VM is stranded: tests/modelcheck visits every state of a
small cluster with them. While pods are on the way to any node, no node is required at all (`why_not_calm`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import MORE_THAN_ANY, AnySnapshot, NodeInfo, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.label_selector import parse_terms
from webhook.core.scheduler.pod_requests import CPU, PODS, Usage, is_over

REPLICA_LABELS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
"""The labels of the webhook's own pods. The Service of manifests/ selects them, so the API server may call each."""
_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MEBIBYTE: Final = 2**20
OWN_NAMESPACE: Final = "kubevirt-coschedule"  # of manifests/, where nothing says another one


def own_namespace_of(configuration: Mapping[str, Any]) -> str:
    """Return the namespace of the webhook that this MutatingWebhookConfiguration calls; OWN_NAMESPACE without one."""
    try:
        namespace = configuration["webhooks"][0]["clientConfig"]["service"]["namespace"]
    except (LookupError, TypeError):
        return OWN_NAMESPACE
    return str(namespace or OWN_NAMESPACE)


def count_replicas(pods: Iterable[Pod], namespace: str) -> int:
    """Return the number of the webhook's own pods on nodes, 1 at least. Pods of other namespaces are none of them."""
    return max(1, sum(_is_replica(pod) for pod in pods if pod.metadata.namespace == namespace))


def _is_replica(pod: Pod) -> bool:
    over = is_over(pod.status.phase if pod.status else None)
    return bool(pod.spec.node_name) and not over and REPLICA_LABELS.items() <= (pod.metadata.labels or {}).items()


def why_contested(cycle: CycleState, node: NodeInfo, scarce: Why | None) -> Why | None:
    """Return why even a preference for the node could take the place of a pod that is to be bound there.

    `scarce` is what `why_scarce` has found.
    """
    pinned = [pod for pod in node.labelled if pod.on.pinned]
    count = node.on_the_way.pods + sum(not pod.on.queued for pod in pinned)
    if scarce and count:
        return Reason.NODE_MAY_FILL_UP.why(node=node.name, count=count, because=scarce)
    own = cycle.pod.spec.required_pod_anti_affinity if pinned else ()
    for term in parse_terms(own, cycle.namespace):
        if any(term.matches(pod.namespace, pod.labels or {}) for pod in pinned):
            return Reason.PINNED_VM_WAITS.why(node=node.name, pods=term)
    return None


def why_scarce(usage: Usage, node: NodeInfo, replicas: int) -> Why | None:
    """Return of which resource the node has too little for the pod, or for the share of each of `replicas`.

    kube-scheduler's NodeResourcesFit plugin (pkg/scheduler/framework/plugins/noderesources/fit.go, fitsRequest) does
    not reject a node that passes here, for the pods that are known. `ignoredResources` in kube-scheduler's own
    configuration are not known: the webhook counts them.
    """
    for reason, others in ((Reason.NO_ROOM, 0), (Reason.REPLICA_SHARE_FULL, replicas - 1)):
        for resource, amount in ((PODS, 1), *usage.requests):
            used, allocatable = node.requested.of(resource), node.allocatable.get(resource, 0)
            if used + amount + others * (amount + node.on_the_way.of(resource)) > allocatable:
                amounts = {"asked": amount, "used": used, "allocatable": allocatable}
                texts = {name: amount_text(resource, each) for name, each in amounts.items()}
                return reason.why(node=node.name, resource=resource, replicas=replicas, **texts)
    return None


def why_not_alone(node: NodeInfo) -> Why | None:
    """Return that other pods are on the way to the node."""
    count = node.on_the_way.pods
    return Reason.PODS_ON_THE_WAY.why(node=node.name, count=count) if count else None


def why_not_calm(snapshot: AnySnapshot) -> Why | None:
    """Return that other pods are on the way to any node.

    While many VMs start, a node can be lost, or taken by others, before kube-scheduler has looked at a pinned VM.
    """
    way = {} if isinstance(snapshot, SnapshotUnavailable) else snapshot.scheduler_cache.on_the_way
    return next((Reason.PODS_ON_THE_WAY.why(node=node, count=count) for node, count in way.items()), None)


def amount_text(resource: str, amount: int) -> str:
    """Return the amount as Kubernetes writes it; `amount` is milli-CPU or whole units."""
    if amount >= MORE_THAN_ANY:
        return "an amount that can't be read"
    if resource == CPU:
        return f"{amount}m"
    if resource.startswith(_IN_BYTES) and amount and amount % _MEBIBYTE == 0:
        return f"{amount // _MEBIBYTE}Mi"
    return str(amount)
