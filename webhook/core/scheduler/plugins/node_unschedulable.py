"""kube-scheduler's NodeUnschedulable plugin (pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go).

Invariant: the plugin does not reject a node that passes here. It is stricter than upstream: upstream accepts a cordoned
node for a pod that tolerates the taint node.kubernetes.io/unschedulable. The webhook steers no VM to a cordoned node.
"""

from __future__ import annotations

from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import PASSED, Rejected, Status


def filter_node(_: CycleState, node: NodeInfo) -> Status:
    """Reject a cordoned node (`spec.unschedulable`)."""
    spec = node.node.spec
    return Rejected(Reason.NODE_CORDONED, {"node": node.name}) if spec and spec.unschedulable else PASSED
