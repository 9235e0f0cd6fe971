"""Nodes that run no new pods although kube-scheduler might accept them: deleted, or not Ready."""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.state.node_info import NodeInfo


def why_unhealthy(node: NodeInfo) -> Why | None:
    """Return why the node runs no new pods: it is being deleted, or is not Ready."""
    if node.node.metadata.deletion_timestamp:
        return Reason.NODE_BEING_DELETED.why(node=node.name)
    status = node.node.status
    return None if status and status.ready else Reason.NODE_NOT_READY.why(node=node.name)
