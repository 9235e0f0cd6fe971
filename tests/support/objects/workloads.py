"""Parts of pods that request resources, as JSON, and the sum of these requests."""

from __future__ import annotations

from typing import Any

from msgspec import convert

from webhook.core.api.container import Workload
from webhook.core.api.pod import PodStatus
from webhook.core.scheduler.pod_requests import usage

Object = dict[str, Any]
GIB = 2**30


def box(name: str = "c", *, limits: Object | None = None, always: bool = False, **asked: Any) -> Object:
    """A container. `asked` is its requests; `always` makes it a sidecar among the init containers."""
    resources = {"requests": asked, **({"limits": limits} if limits else {})}
    policy = {"restartPolicy": "Always"} if always else {}
    return {"name": name, "resources": resources, **policy}


def resize(reason: str) -> list[Object]:
    """The conditions of a pod whose resize is pending."""
    return [{"type": "Ready", "reason": "Infeasible"}, {"type": "PodResizePending", "reason": reason}]


def asks(spec: Object, status: Object | None = None) -> dict[str, int]:
    """The requests that count for this pod."""
    return dict(usage(convert(spec, Workload), None if status is None else convert(status, PodStatus)).requests)
