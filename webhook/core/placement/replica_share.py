"""What one replica of the webhook may give away of a node while other replicas decide at the same moment.

Only a pod that may run on one node alone can be stranded. It must find enough there, whatever pods come before it.
But a replica can't see yet what other replicas decide at this moment. Therefore:

=======================================  ===============================  =================================
what the pods of the node leave free     no pod is queued for the node    pods are queued for the node
                                         (see `NodeInfo.queued`)
=======================================  ===============================  =================================
is enough for the share of each replica  the VM may be pinned             the VM may prefer the node
is not enough for all shares; perhaps    the VM may prefer the node       the VM may prefer the node once all
not even for this VM                                                      replicas know that several VMs
                                                                          start together there
=======================================  ===============================  =================================

A replica's share is this pod and the pods that are queued for the node. There must be enough for as many shares as
there are replicas, beside all pods that are bound to the node, nominated for it or expected there. If each replica
keeps to its share, all together give away no more than there is. A queued pod counts in the share although a watch has
shown the pod here: another replica may have used its own share before its watch showed that pod.

While several VMs start together on a node (`SchedulerCache`), no VM is pinned there: kube-scheduler gives the node to
as many VMs as fit. Before all replicas know of them, a preference beyond the share could take the resources of a
pinned VM that no watch has shown yet. The same holds while a VM that may run on no other node waits for this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins.node_resources_fit import insufficient_resources
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_requests import PODS, Usage, is_over
from webhook.core.scheduler.state.snapshot import Snapshot, SnapshotUnavailable

REPLICA_LABELS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
"""The labels of the webhook's own pods. The Service of manifests/base selects them, so the API server may call each."""
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


def verdict_if_scarce(name: str, why: Why, node: NodeInfo) -> NodeFit:
    """Return the verdict on a node that has less than the share of each replica, because of `why`.

    The webhook does not even prefer the node while other VMs may need what is left.
    """
    if node.queued and not node.known_to_all:
        contested = Reason.NODE_MAY_FILL_UP.why(node=name, count=node.queued, because=why)
        return NodeFit(name, contested, preferable=False)
    if node.waited_for:
        return NodeFit(name, Reason.PINNED_VM_WAITS.why(node=name, because=why), preferable=False)
    return NodeFit(name, why)


def verdict_if_shared(name: str, usage: Usage, node: NodeInfo, snapshot: Snapshot) -> NodeFit | None:
    """Return the verdict on a node that has enough for the pod, if other pods on their way there forbid a pin."""
    if snapshot.replicas > 1:
        insufficient = next(insufficient_resources(usage, node, _margin(usage, node, snapshot)), None)
        if insufficient is not None:
            why = Reason.REPLICA_SHARE_FULL.why(node=name, replicas=snapshot.replicas, **insufficient.names())
            return verdict_if_scarce(name, why, node)
    if node.queued:
        return NodeFit(name, Reason.PODS_NOT_EVALUATED_YET.why(node=name, count=node.queued))
    return NodeFit(name, Reason.REPLICAS_BEHIND.why(node=name)) if node.starting_together else None


def why_not_shared(cycle: CycleState) -> Why | None:
    """Return what the pod needs that can't be divided among replicas, so that two of them could both pin a pod."""
    snapshot = cycle.snapshot
    if isinstance(snapshot, SnapshotUnavailable) or snapshot.replicas == 1:
        return None
    if cycle.usage.ports:
        what = "host port"
    elif cycle.pod.spec.required_pod_anti_affinity:
        what = "required anti-affinity"
    else:
        return None
    return Reason.REPLICAS_MAY_CONFLICT.why(what=what, replicas=snapshot.replicas)


def _margin(usage: Usage, node: NodeInfo, snapshot: Snapshot) -> Mapping[str, int]:
    """Return how much of each resource must be left beside the pod: the other replicas' shares."""
    others, queued = snapshot.replicas - 1, node.requested_by_queued
    shares = {resource: others * (amount + queued.amounts.get(resource, 0)) for resource, amount in usage.requests}
    return {**shares, PODS: others * (1 + queued.pods)}
