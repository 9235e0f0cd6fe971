"""kube-scheduler's DynamicResources plugin (pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go).

Invariant: the plugin rejects no node for a pod that passes here. Which nodes have the devices that a pod claims is not
known: the webhook reads no ResourceSlice and no ResourceClaim.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState


def pre_filter(cycle: CycleState) -> Why | None:
    """Return that the pod claims devices, because only some nodes may have them."""
    return Reason.RESOURCE_CLAIMS.why() if cycle.pod.spec.resource_claims else None
