"""Nodes that the webhook leaves out although kube-scheduler might accept them: deleted, not Ready, or being drained."""

from __future__ import annotations

from typing import Final

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.plugins.taint_toleration import taint_text
from webhook.core.scheduler.state.node_info import NodeInfo

DRAIN_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/out-of-service",  # Kubernetes removes its pods and detaches its volumes
        "node.cloudprovider.kubernetes.io/shutdown",
        "kubevirt.io/drain",  # KubeVirt migrates its VMs away (configuration.migrations.nodeDrainTaintKey)
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    }
)
"""Taints of nodes that the cluster is about to lose. A pod that tolerates them would soon have to leave again."""


def why_unhealthy(node: NodeInfo) -> Why | None:
    """Return why the node runs no new pods: it is being deleted, or is not Ready."""
    if node.node.metadata.deletion_timestamp:
        return Reason.NODE_BEING_DELETED.why(node=node.name)
    status = node.node.status
    return None if status and status.ready else Reason.NODE_NOT_READY.why(node=node.name)


def why_drained(node: NodeInfo) -> Why | None:
    """Return why the cluster is about to lose the node: the first of its taints that is among DRAIN_TAINTS."""
    spec = node.node.spec
    for taint in (spec.taints or ()) if spec else ():
        if taint.key in DRAIN_TAINTS:
            return Reason.NODE_LEAVING.why(node=node.name, taint=taint_text(taint))
    return None
