"""kube-scheduler's NodePorts plugin (pkg/scheduler/framework/plugins/nodeports/node_ports.go, fitsPorts).

Invariant: the plugin does not reject a node that passes here, for the pods that are known.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.node_info import NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_requests import HostPort, Usage


def filter_node(cycle: CycleState, node: NodeInfo) -> Why | None:
    """Reject a node on which another pod has one of the pod's host ports."""
    usage = cycle.usage
    port = find_taken(usage, node.requested) if usage.ports else None
    if port is None:
        return None
    return Reason.PORT_TAKEN.why(node=node.name, port=f"{port.protocol} {port.address}:{port.port}")


def find_taken(usage: Usage, requested: NodeRequests) -> HostPort | None:
    """Return the first host port of the pod that a pod of the node has already."""
    return next((port for port in usage.ports if any(map(port.clashes, requested.ports))), None)
