"""A stuck VM, its pod as a plain dict, and the answer of webhook.core.reunite.stuck for it."""

from __future__ import annotations

from typing import Any, Final

from msgspec import convert
from support.fakes.views import cluster
from support.objects import builders
from support.objects.builders_pods import asking

from webhook.core.api.pod import Pod
from webhook.core.live_migration.vm import VM
from webhook.core.observe.vm_status import State, vm_status_of
from webhook.core.opt_in import Mode, Policy
from webhook.core.reunite.not_yet import NotYet, Rule
from webhook.core.reunite.stuck import RestartVM, decide_restart
from webhook.core.view import ClusterView
from webhook.objects.manifests import Manifests

SINCE: Final = "2026-11-22T12:00:00Z"
STARTED: Final = "2026-11-22T11:59:59Z"
NOON: Final = 1_795_348_800.0  # SINCE
CLAIM: Final = (builders.persistent_volume_claim("a", volume_name="pv"), builders.persistent_volume("pv", claim="a"))
ASKS: Final = {"cpu": "2"}
Object = dict[str, Any]


def waiting(**parts: Any) -> Object:
    """The pod of VM db01 that the webhook pinned to n1, and that kube-scheduler finds no node for."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": SINCE}
    status = {"phase": "Pending", "conditions": [condition], **parts.pop("status", {})}
    annotations = parts.pop("annotations", builders.written("n1"))
    pinned = {"pinned_to": ["n1"], "annotations": annotations, "claims": ["a"], "uid": builders.OWNER_UID, **parts}
    return {**asking(builders.vm_pod("db01", **pinned), ASKS), "status": status}


def stuck(object_: Object | None = None, **parts: Any) -> VM:
    """The VM of this pod."""
    object_ = object_ or waiting()
    found = convert(object_, Pod)
    row = vm_status_of([convert(waiting(), Pod)], cluster(), Policy(mode=Mode.REQUIRED))
    assert row is not None
    assert row.state is State.STUCK
    parts = {"started": STARTED, "owner": "db01", "run_strategy": "Always", **parts}
    return VM(row=row, pod=found, **parts)


def lost(*others: Object) -> Manifests:
    """A cluster whose node n1 is lost, with these objects beside it."""
    return cluster(*CLAIM, builders.node("n1", ready="Unknown"), *others)


def judged(vm: VM, view: ClusterView, now: float = NOON + 60, *, default_on: bool = True) -> RestartVM | NotYet:
    """The answer for one VM."""
    assert vm.pod is not None
    return decide_restart(vm, vm.pod, now, view, default_on=default_on)


def rule(found: object) -> Rule:
    """The rule that says no."""
    assert isinstance(found, NotYet)
    return found.rule
