"""kube-scheduler's PodTopologySpread plugin (pkg/scheduler/framework/plugins/podtopologyspread/filtering.go).

Invariant: the plugin rejects no node for a pod that passes here. A constraint with DoNotSchedule is not evaluated.
kube-scheduler compares only nodes that the pod's required terms allow (nodeAffinityPolicy Honor, the default). So a
required node, or a short list, would change what the constraint means. Default constraints in kube-scheduler's own
configuration are not known; those that are built in are soft.
"""

from __future__ import annotations

from typing import Final

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState

_SOFT: Final = "ScheduleAnyway"


def pre_filter(cycle: CycleState) -> Why | None:
    """Return the constraint of the pod that can reject a node."""
    for constraint in cycle.pod.spec.topology_spread_constraints or ():
        if constraint.when_unsatisfiable != _SOFT:
            return Reason.TOPOLOGY_SPREAD.why(key=constraint.topology_key)
    return None
