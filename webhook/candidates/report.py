"""Report: the candidates in the form that `-o json` and `-o yaml` print, and the change that opts a VM in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.core.decision import UNCHANGED, Leave, outcome
from webhook.core.observe.candidate import ASKS, Candidate
from webhook.core.observe.vm_status import State
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.plan.planner import assumed_owner
from webhook.status.report import VolumeItem, volume_item

_CHANGE: Final = {"spec": {"template": {"metadata": {"annotations": {ANNOTATION_CO_SCHEDULE: ASKS}}}}}


class NextStart(Struct, frozen=True, kw_only=True):
    """What the webhook would decide if the VM started now and asked for co-scheduling.

    `decision` is required, preferred or unchanged; `nodes` are the required or preferred nodes. `followed`: whether a
    share-manager would be steered to the VM instead.
    """

    decision: str
    nodes: Sequence[str]
    reason: str
    because: str
    followed: bool


class CandidateItem(Struct, rename="camel", frozen=True, kw_only=True):
    """One VM. `change` is the command that opts the VM in; empty for a VM that has opted in, or has no VirtualMachine.

    `annotation` is the value of its annotation kubevirt-scheduler/co-schedule, None without one.
    """

    namespace: str
    name: str
    node: str | None
    state: State
    opted_in: bool
    annotation: str | None
    next_start: NextStart
    change: str
    volumes: list[VolumeItem]

    @property
    def gains(self) -> bool:
        """Whether the VM has not opted in, and it or its share-manager would be placed at the next start."""
        return not self.opted_in and (self.next_start.decision != UNCHANGED or self.next_start.followed)


class CandidateReport(Struct, rename="camel", frozen=True, kw_only=True):
    """The VMs. `problems`: what could not be read."""

    cluster: str
    at: str
    problems: list[str]
    items: list[CandidateItem]


def candidate_item(candidate: Candidate, vmi: Mapping[str, Any]) -> CandidateItem:
    """Return a VM in the form that is printed. `vmi` is its VirtualMachineInstance as JSON, empty if unknown."""
    now, decision = candidate.now, candidate.decision
    owner = assumed_owner(vmi, now.name)
    return CandidateItem(
        namespace=now.namespace,
        name=now.name,
        node=now.node,
        state=now.state,
        opted_in=candidate.opted_in,
        annotation=candidate.annotation,
        next_start=NextStart(
            decision=outcome(decision),
            nodes=() if isinstance(decision, Leave) else decision.nodes,
            reason=decision.why.reason.code,
            because=decision.why.sentence,
            followed=candidate.followed,
        ),
        change="" if candidate.opted_in or owner is None else _opt_in(owner, now.namespace),
        volumes=[volume_item(volume) for volume in now.volumes],
    )


def _opt_in(vm: str, namespace: str) -> str:
    """Return the command that opts a VM in. KubeVirt copies the annotation to the pod of the VM's next start."""
    patch = shlex.quote(json.dumps(_CHANGE, separators=(",", ":")))
    return f"kubectl patch virtualmachine {shlex.quote(vm)} -n {shlex.quote(namespace)} --type merge -p {patch}"


def count_gains(items: Sequence[CandidateItem]) -> str:
    """Return how many VMs there are, how many are apart, and how many would gain; for at least one VM."""
    apart = sum(each.state is State.APART for each in items)
    others = [each for each in items if not each.opted_in]
    gaining = sum(each.gains for each in others)
    return (
        f"{_vms(len(items))} with a share-manager, {apart} of them apart from it; {len(others)} not opted in, "
        f"{gaining} of those would be placed at the next start"
    )


def _vms(count: int) -> str:
    return f"{count} VM" if count == 1 else f"{count} VMs"


def commands(items: Iterable[CandidateItem]) -> list[str]:
    """Return the commands that opt in the VMs which have not opted in."""
    return [each.change for each in items if each.change]
