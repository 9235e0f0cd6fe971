"""kube-scheduler's NodeUnschedulable plugin (pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go).

Invariant: the plugin does not reject a node that passes here. It is stricter than upstream: upstream accepts a cordoned
node for a pod that tolerates the taint node.kubernetes.io/unschedulable. The webhook steers no VM to a cordoned node.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.node_info import NodeInfo


def filter_node(_: CycleState, node: NodeInfo) -> Why | None:
    """Reject a cordoned node (`spec.unschedulable`)."""
    spec = node.node.spec
    return Reason.NODE_CORDONED.why(node=node.name) if spec and spec.unschedulable else None
