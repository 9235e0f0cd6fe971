"""kube-scheduler's TaintToleration plugin (pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go).

Invariant: the plugin does not reject a node that passes here. A taint that a controller adds later is not known. It is
stricter than upstream: a pod that tolerates one of DRAIN_TAINTS would soon have to leave the node again, and the
webhook steers no VM to such a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.core.api.node import Node, Taint
from webhook.core.api.pod import Toleration
from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.matching.toleration import find_untolerated, tolerates
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.status import PASSED, Rejected, Status

_AVOIDED: Final = "PreferNoSchedule"

DRAIN_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/out-of-service",  # Kubernetes removes its pods and detaches its volumes
        "node.cloudprovider.kubernetes.io/shutdown",
        "kubevirt.io/drain",  # KubeVirt migrates its VMs away (configuration.migrations.nodeDrainTaintKey)
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    }
)
"""Taints of nodes that the cluster is about to lose."""


def filter_node(cycle: CycleState, node: NodeInfo) -> Status:
    """Reject a node with one of DRAIN_TAINTS, or a taint NoSchedule or NoExecute that the pod does not tolerate."""
    spec = node.node.spec
    if not (spec and spec.taints):
        return PASSED
    for taint in spec.taints:
        if taint.key in DRAIN_TAINTS:
            return Rejected(Reason.NODE_LEAVING, {"node": node.name, "taint": taint_text(taint)})
    untolerated = find_untolerated(spec.taints, cycle.incoming.tolerations)
    if untolerated is None:
        return PASSED
    return Rejected(Reason.TAINT_NOT_TOLERATED, {"node": node.name, "taint": taint_text(untolerated)})


def count_prefer_no_schedule(node: Node, tolerations: Iterable[Toleration]) -> int:
    """Return how many taints PreferNoSchedule of the node the pod does not tolerate.

    Upstream scores by this count (countIntolerableTaintsPreferNoSchedule). The score has more weight than all that
    preferred node affinity can give.
    """
    taints = (node.spec.taints or ()) if node.spec else ()
    return sum(taint.effect == _AVOIDED and not tolerates(tolerations, taint) for taint in taints)


def taint_text(taint: Taint) -> str:
    """Return the taint as kubectl writes it: KEY=VALUE:EFFECT, or KEY:EFFECT."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
