"""Report: the candidates in the form that `-o json` and `-o yaml` print, and the change that opts a VM in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from webhook.core.observe.candidate import Candidate, NextStart, opt_in_change
from webhook.core.observe.vm_item import VolumeItem, volume_item
from webhook.core.observe.vm_status import SEVERITY, State
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance
from webhook.objects.vm_rules import rules_of, shares_by_virtiofs
from webhook.status.report import resource_name
from webhook.terminal import printable

STOPPED: Final = "stopped"


class CandidateItem(Struct, rename="camel", frozen=True, kw_only=True):
    """One VM. `change` is the command that opts the VM in, `no_change` why a VM that has not opted in has no command.

    `state` is STOPPED for a VM without a pod. `annotation` is the value of its annotation
    kubevirt-scheduler/co-schedule, None without one. `namespace_label` is the value of its Namespace's label, None
    without one or if the VM has the annotation. `checks`: the VM's own rules, by which kube-scheduler and the webhook
    check the nodes of `next_start`. `needs_share_manager`: False if nobody else uses its volumes and virtiofs none, so
    that block volumes of a migratable StorageClass would do; None if that is not known. `notes`: what is not known.
    """

    namespace: str
    name: str
    node: str | None
    state: State | Literal["stopped"]
    opted_in: bool
    annotation: str | None
    namespace_label: str | None
    next_start: NextStart
    checks: Sequence[str]
    needs_share_manager: bool | None
    change: str
    no_change: str
    volumes: list[VolumeItem]
    notes: Sequence[str]

    @property
    def may_be_opted_in(self) -> bool:
        """Whether a setting of the cluster can opt the VM in: neither its annotation nor the label says anything."""
        return not self.opted_in and self.annotation is None and self.namespace_label is None

    @property
    def gains(self) -> bool:
        """Whether the VM has not opted in, and it or its share-manager would be placed at the next start."""
        return not self.opted_in and self.next_start.gains

    @property
    def order(self) -> tuple[bool, bool, int, str, str]:
        """A sort key: what would gain comes first, and of that what is apart now."""
        rank = len(SEVERITY) if self.state == STOPPED else SEVERITY[State(self.state)]
        return self.opted_in, not self.gains, rank, self.namespace, self.name


class CandidateReport(Struct, rename="camel", frozen=True, kw_only=True):
    """The VMs. `settings`: those of the webhook. `problems`: what could not be read."""

    cluster: str
    at: str
    settings: str
    problems: list[str]
    items: list[CandidateItem]


def candidate_item(
    candidate: Candidate,
    owner: str | None,
    described: VirtualMachine | VirtualMachineInstance | None,
    notes: Sequence[str] = (),
) -> CandidateItem:
    """Return a VM in the form that is printed.

    `owner` is its VirtualMachine, None if it has none; `described` the object that has its rules, None if unread.
    """
    change, no_change = opt_in_change(candidate, owner)
    needs = None if described is None or candidate.alone is None else not candidate.alone
    if described and shares_by_virtiofs(described):
        needs = True
    return CandidateItem(
        namespace=candidate.vm.namespace,
        name=candidate.vm.name,
        node=candidate.node,
        state=candidate.state or STOPPED,
        opted_in=candidate.opted_in,
        annotation=candidate.annotation,
        namespace_label=candidate.label,
        next_start=candidate.next_start,
        checks=rules_of(described) if described else ["the VM's own rules, which were not read"],
        needs_share_manager=needs,
        change=change,
        no_change=no_change,
        volumes=[volume_item(volume) for volume in candidate.volumes],
        notes=notes,
    )


def counted(items: Sequence[CandidateItem], *, known: bool) -> str:
    """Return how many VMs there are, how many are apart or stopped, how many would gain, and why; of at least one.

    `known`: whether everything could be read.
    """
    apart = sum(each.state is State.APART for each in items)
    stopped = sum(each.state == STOPPED for each in items)
    others = [each for each in items if not each.opted_in]
    causes = Counter(each.next_start.cause for each in others)
    first = (
        f"{_vms(len(items))} with a share-manager, {apart} of them apart from it"
        if known
        else f"not everything could be read: of {_vms(len(items))} that have a share-manager or may have one, {apart} "
        "are known to be apart from it"
    ) + (
        f"{f', {stopped} stopped' if stopped else ''}; {len(others)} not opted in, "
        f"{sum(each.gains for each in others)} of those would gain"
    )
    return f"{first}\nwhy: {', '.join(f'{cause} ({n})' for cause, n in causes.most_common())}" if causes else first


def _vms(count: int) -> str:
    return f"{count} VM" if count == 1 else f"{count} VMs"


def resource(item: CandidateItem) -> str:
    """Return the VM's name as `kubectl get -o name` prints names: a VM that is stopped has no other object."""
    return f"virtualmachine.kubevirt.io/{item.name}" if item.state == STOPPED else resource_name(item.name)


def commands(items: Iterable[CandidateItem]) -> list[str]:
    """Return the commands that opt in the VMs which have not opted in; a comment for each of them without a command."""
    return [
        each.change or f"# {printable(f'{each.namespace}/{each.name}: {each.no_change}')}"
        for each in items
        if not each.opted_in
    ]
