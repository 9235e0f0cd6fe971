"""VMs as `status` sees them: claims, share-managers and virt-launcher pods with their times, and a VM's row."""

from __future__ import annotations

from typing import Any, Final

from msgspec import convert
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.core.observe.vm_state import vm_status_of
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Mode, Policy
from webhook.core.view import NoObject, Ref

EARLY, LATER, LATEST = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z", "2026-01-03T00:00:00Z"
Object = dict[str, Any]


def disk(name: str, **claim: Any) -> list[Object]:
    """A claim and its volume."""
    return [
        builders.persistent_volume_claim(name, volume_name=f"pv-{name}", **claim),
        builders.persistent_volume(f"pv-{name}", claim=name, handle=name),
    ]


def scheduled(at: str) -> Object:
    """The condition of a pod that got its node at this time."""
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}


def unschedulable(at: str, message: str | None = "0/3 nodes are available: 3 Insufficient memory.") -> Object:
    """The condition that kube-scheduler sets on a pod that fits on no node."""
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": at}
    return told if message is None else {**told, "message": message}


def served(name: str, node: str | None, at: str = EARLY, state: str = "running") -> list[Object]:
    """A share-manager and its pod, on this node since this time."""
    pod = builders.share_manager_pod(name, **({"nodeName": node} if node else {}))
    pod["status"]["conditions"] = [scheduled(at)]
    return [builders.share_manager(name, state=state, ownerID=node or "node-x"), pod]


def launcher(*claims: str, name: str = "virt-launcher-db01-aaaaa", created: str | None = EARLY, **parts: Any) -> Pod:
    """A virt-launcher pod as the API server stores it. `conditions` and `phase` go to its status."""
    status = {"phase": parts.pop("phase", "Running"), "conditions": parts.pop("conditions", None)}
    deleting = {"deletionTimestamp": LATER} if parts.pop("deleting", False) else {}
    made = builders.virt_launcher_pod(claims=claims, namespace="vms", **parts)
    made["metadata"] |= {"name": name, "creationTimestamp": created, **deleting}
    return convert({**made, "status": status}, Pod)


def the_row(
    *pods: Pod,
    objects: list[Object] | None = None,
    gaps: dict[Ref, NoObject] | None = None,
    mode: Mode = Mode.REQUIRED,
    at: str = LATEST,
) -> VMStatus:
    """The row of a VM's pods in a cluster of these objects, at this time."""
    found = vm_status_of(pods, ViewWithGaps(cluster(*(objects or [])), gaps or {}), Policy(mode), at)
    assert found is not None
    return found


class Clock:
    """The wall clock of a test. It starts at noon, and a test can set it."""

    def __init__(self) -> None:
        self.seconds = 1770120000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.seconds


def running_pod(vm: str, claim: str, node: str | None = "node-a", at: str = EARLY, pod: str = "aaaaa") -> Object:
    """The pod that runs a VM, as the API server stores it. With node None it is not scheduled."""
    made = builders.virt_launcher_pod(claims=[claim], namespace="vms", **({"nodeName": node} if node else {}))
    made["metadata"] |= {"name": f"virt-launcher-{vm}-{pod}", "creationTimestamp": at}
    made["metadata"]["ownerReferences"][0]["name"] = vm
    status = {"phase": "Running", "conditions": [scheduled(at)]} if node else {"phase": "Pending"}
    return {**made, "status": status}


TWO: Final = [*disk("root"), *disk("data")]
