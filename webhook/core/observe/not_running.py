"""Whether the pod that has a node for long does not run: what its own status shows.

A pod is Pending until each of its containers has started once (kubernetes pkg/kubelet/kubelet_pods.go, getPhase).
Evidence only: a pod whose status has no phase, or not the time of its binding, is not known to wait.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why

_PENDING: Final = "Pending"
_LONG: Final = timedelta(minutes=10)  # a large image on a slow network needs minutes
_NO_CONTAINER: Final = "the kubelet reports no container that waits"


def why_not_running(pod: Pod, at: str) -> Why | None:
    """Return why a pod that has a node counts as not running at this time (RFC 3339); None if it does not count."""
    since = _bound_at(pod)
    if pod.status is None or pod.status.phase != _PENDING or since is None:
        return None
    if datetime.fromisoformat(at) - datetime.fromisoformat(since) < _LONG:
        return None
    return Reason.VM_NOT_RUNNING.why(
        pod=pod.metadata.name, node=pod.spec.node_name, since=since, waiting=pod.status.waiting or _NO_CONTAINER
    )


def is_unknown(pod: Pod) -> bool:
    """Whether a pod has a node, and its status does not tell whether it runs."""
    phase = pod.status.phase if pod.status else None
    return bool(pod.spec.node_name) and (phase is None or (phase == _PENDING and _bound_at(pod) is None))


def _bound_at(pod: Pod) -> str | None:
    condition = pod.status.scheduled if pod.status else None
    return condition.last_transition_time if condition else None
