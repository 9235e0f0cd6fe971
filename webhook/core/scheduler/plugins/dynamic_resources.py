"""kube-scheduler's DynamicResources plugin (pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go).

Invariant: the plugin rejects no node for a pod that passes here. Which nodes have the devices that a pod claims is not
known: the webhook reads no ResourceSlice and no ResourceClaim.
"""

from __future__ import annotations

from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.status import PASSED, Status, Unknown


def pre_filter(cycle: CycleState) -> Status:
    """Return Unknown for a pod that claims devices, because only some nodes may have them."""
    return Unknown(Reason.RESOURCE_CLAIMS, {}) if cycle.incoming.pod.spec.resource_claims else PASSED
