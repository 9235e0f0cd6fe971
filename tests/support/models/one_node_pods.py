"""Pods on n1, the pod under admission, and what feasibility says of n1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import convert
from support.models.one_node import OneNodeSnapshot, ViewWithSnapshot
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement.feasibility import evaluate
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins.volumes import ClaimVolume
from webhook.core.scheduler.state.pod_info import NO_TERMS, PodInfo, PodNode, pod_info
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.state.snapshot import AnySnapshot

HOSTNAME = "kubernetes.io/hostname"
DB = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}


def there(*pods: PodInfo, **more: Any) -> OneNodeSnapshot:
    """Return a snapshot of n1 with these pods."""
    made = OneNodeSnapshot(**more)
    for pod in pods:
        made.scheduler_cache.add(pod)
    return made


def taking(cpu: int, *, bound: bool = True, **described: Any) -> PodInfo:
    """Return a pod that requests so many milli-CPU of n1."""
    labels, terms = described.pop("labels", None), described.pop("anti_affinity", NO_TERMS)
    return pod_info("vms", Usage((("cpu", cpu),)), terms, PodNode(node="n1", bound=bound, **described), labels)


def asking(cpu: str = "500m", **spec: Any) -> Pod:
    """Return the pod under admission."""
    container = {"name": "compute", "resources": {"requests": {"cpu": cpu}}}
    return convert(builders.virt_launcher_pod(containers=[container], **spec), Pod)


def cycle(snapshot: AnySnapshot, pod: Pod, volumes: Sequence[ClaimVolume] = ()) -> CycleState:
    """Return the state of the pod under admission."""
    return CycleState(pod, "vms", snapshot, volumes)


def verdict(snapshot: AnySnapshot, pod: Pod | None = None, volumes: Sequence[ClaimVolume] = ()) -> NodeFit:
    """Return the verdict on n1."""
    view = ViewWithSnapshot(snapshot)
    found = evaluate("n1", cycle(snapshot, pod or asking(), volumes), view)
    assert isinstance(found, NodeFit)
    return found


def coming(cpu: int, **described: Any) -> PodInfo:
    """Return a pod that is on the way to n1: kube-scheduler has not tried to schedule it yet."""
    return taking(cpu, bound=False, queued=True, **described)


APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [DB]}}
