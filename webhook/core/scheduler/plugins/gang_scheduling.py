"""kube-scheduler's GangScheduling plugin (pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go).

Invariant: kube-scheduler does not hold back a pod that passes here for its group. When the other pods of a group come,
and which nodes the group gets, is not known.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState


def pre_enqueue(cycle: CycleState) -> Why | None:
    """Reject a pod of a group: kube-scheduler ignores the pod until enough pods of the group are there."""
    return Reason.SCHEDULING_GROUP.why() if cycle.pod.spec.scheduling_group else None
