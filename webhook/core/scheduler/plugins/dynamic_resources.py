"""kube-scheduler's DynamicResources filter (plugins/dynamicresources/dynamicresources.go)."""

from __future__ import annotations

from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why


def claimed_devices(pod: Pod) -> Why | None:
    """Whether the pod claims devices, which only some nodes may have, and of which nothing is known here."""
    return Reason.RESOURCE_CLAIMS.why() if pod.spec.resource_claims else None
