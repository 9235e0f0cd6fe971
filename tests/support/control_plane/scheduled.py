"""What kube-scheduler has said of a pod, as the API server shows it."""

from __future__ import annotations

from support.control_plane.kube_api import Object


def _condition(pod: Object) -> Object:
    conditions = pod["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def is_judged(pod: Object) -> bool:
    """Whether the scheduler has bound the pod, or has said that it can't: an error of its own is neither."""
    return bool(pod["spec"].get("nodeName")) or _condition(pod).get("reason") == "Unschedulable"


def refusal(pod: Object) -> str | None:
    """Why it found no node, in its words; None where it bound the pod."""
    return None if pod["spec"].get("nodeName") else str(_condition(pod).get("message"))
