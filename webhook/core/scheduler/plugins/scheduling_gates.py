"""kube-scheduler's SchedulingGates plugin (pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go).

Invariant: kube-scheduler does not ignore a pod that passes here because of a gate. When a gate is removed, and what the
nodes have by then, is not known.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState


def pre_enqueue(cycle: CycleState) -> Why | None:
    """Reject a pod with a scheduling gate: kube-scheduler ignores the pod until all gates are removed."""
    gates = cycle.pod.spec.scheduling_gates
    return Reason.SCHEDULING_GATED.why(gate=gates[0].name) if gates else None
