"""Report: the candidates in the form that `-o json` and `-o yaml` print, and the change that opts a VM in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from webhook.core.observe.candidate import Candidate, NextStart, opt_in_command
from webhook.core.observe.vm_status import State
from webhook.status.report import VolumeItem, volume_item


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
        return not self.opted_in and self.next_start.gains


class CandidateReport(Struct, rename="camel", frozen=True, kw_only=True):
    """The VMs. `problems`: what could not be read."""

    cluster: str
    at: str
    problems: list[str]
    items: list[CandidateItem]


def candidate_item(candidate: Candidate, owner: str | None) -> CandidateItem:
    """Return a VM in the form that is printed. `owner` is its VirtualMachine, None if it has none."""
    now = candidate.now
    return CandidateItem(
        namespace=now.namespace,
        name=now.name,
        node=now.node,
        state=now.state,
        opted_in=candidate.opted_in,
        annotation=candidate.annotation,
        next_start=candidate.next_start,
        change="" if candidate.opted_in or owner is None else opt_in_command(owner, now.namespace),
        volumes=[volume_item(volume) for volume in now.volumes],
    )


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
