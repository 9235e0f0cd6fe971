"""The explanation of one pod, or of one VM: as `-o json` prints it, and as text with sections as in `kubectl describe`.

Invariant: everything shown is in the explanation. Names come from files, so control characters are shown as escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.component_base.errors import printable
from webhook.core.admit import Entry
from webhook.core.decision import WeightedNode
from webhook.core.observe.vm_status import VMStatus
from webhook.core.observe.vm_volumes import UNREAD
from webhook.core.opt_in import OptedInBy
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.terminal import columns


class Subject(Struct, rename="camel", frozen=True, kw_only=True):
    """The object. `source` is file:line, or TYPE/NAME as typed. `name` can be a pod's generateName."""

    kind: str
    namespace: str
    name: str
    source: str


class Explanation(Struct, rename="camel", frozen=True, kw_only=True):
    """What both kinds have. Each key is always present; a key that does not apply is null or empty.

    Attributes:
        object: the object that is explained.
        cluster: the cluster or the files with the other objects.
        settings: those of the webhook, and which of them are assumed.
        notes: what could not be read.
        hints: what the user can do.
    """

    object: Subject
    cluster: str
    settings: str
    notes: Sequence[str]
    hints: Sequence[str]


class Evidence(Struct, rename="camel", frozen=True, kw_only=True):
    """What one claim of a pod led to, or one VM of a share-manager pod. `node` is None if it names no node."""

    claim: str
    volume: str | None
    node: str | None
    reason: str
    sentence: str


class NodeResult(Struct, rename="camel", frozen=True, kw_only=True):
    """What core says of a node that the evidence names."""

    name: str
    reason: str
    sentence: str


class PodExplanation(Explanation, rename="camel", frozen=True, kw_only=True):
    """The decision of core for a pod.

    Attributes:
        asked: the value that asks for co-scheduling, or does not, and whose it is; empty for none.
        opted_in: whether the VM of the pod asks; None for a share-manager pod, whose VMs ask.
        entry: the entry of the webhook configuration that selects the pod; it decides which rules apply.
        evidence: of each claim, or of each VM that uses the volume.
        nodes: each node that the evidence names.
        decision: required, preferred or unchanged.
        reason: the code of the reason.
        sentence: the reason in words.
        required: the nodes of the required affinity, best first.
        preferred: the nodes of the preferred affinity, best first.
        shortlist: the nodes to which a preference in a large cluster restricts kube-scheduler.
        annotation: the annotation kubevirt-scheduler/decision that the webhook writes.
        patch: the JSON patch.
    """

    asked: str
    opted_in: bool | None
    entry: str
    evidence: Sequence[Evidence]
    nodes: Sequence[NodeResult]
    decision: str
    reason: str
    sentence: str
    required: Sequence[str]
    preferred: Sequence[WeightedNode]
    shortlist: Sequence[str]
    annotation: str | None
    patch: Sequence[Any]

    @property
    def asks_for_a_node(self) -> bool:
        """Whether the webhook asks for a node."""
        return bool(self.required or self.preferred)

    @property
    def is_unread(self) -> bool:
        """Whether what decides could not be read."""
        return self.reason in UNREAD

    @property
    def may_be_opted_in(self) -> bool:
        """Whether the cluster's setting decides: neither annotation nor label says anything."""
        return self.opted_in is False and not self.asked


class VMExplanation(Explanation, rename="camel", frozen=True, kw_only=True):
    """What decides about the next start of a VM. The pod does not exist yet, so nothing says where it can run.

    `vm` is the VM as `status` and `candidates` have it.
    """

    vm: VMStatus

    @property
    def asks_for_a_node(self) -> bool:
        """Whether the webhook would ask for a node."""
        start = self.vm.next_start
        return bool(start and start.gains and not self.vm.not_asked)

    @property
    def is_unread(self) -> bool:
        """Whether what decides could not be read."""
        start = self.vm.next_start
        codes = {start.reason if start else "", self.vm.not_asked.partition(":")[0]}
        return bool(codes & UNREAD or (start and start.unread))

    @property
    def may_be_opted_in(self) -> bool:
        """Whether the cluster's setting decides: neither annotation nor label says anything."""
        return bool(self.vm.not_asked) and not self.vm.asked


_INDENT: Final = "  "


def render_explanation(explained: PodExplanation | VMExplanation) -> str:
    """Return the text of one explanation, with a line break at the end."""
    sections = _vm(explained) if isinstance(explained, VMExplanation) else _pod(explained)
    lines = [*map(printable, _header(explained)), *sections]
    return "".join(f"{line}\n" for line in lines)


def _header(explained: Explanation) -> Iterator[str]:
    subject = explained.object
    yield f"{subject.kind} {subject.namespace}/{subject.name} ({subject.source})"
    yield f"{_INDENT}Cluster: {explained.cluster}"
    yield f"{_INDENT}Webhook: {explained.settings}"
    yield from (f"{_INDENT}Hint: {hint}" for hint in explained.hints)
    yield from (f"{_INDENT}Note: {note}" for note in explained.notes)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A title and its lines."""
    yield ""
    yield f"{title}:"
    yield from (f"{_INDENT}{printable(line)}" for line in lines)


def _now(vm: VMStatus) -> list[str]:
    rows = [
        ("Pod:", f"{vm.pod}, on {f'node {vm.node}' if vm.node else 'no node'}"),
        ("Decided:", f"{vm.decided} at the pod's creation"),
        ("State:", f"{vm.state}{f' since {vm.since}' if vm.since else ''}"),
        ("Because:", vm.why),
    ]
    return columns([*rows, ("To do:", vm.to_do)] if vm.remedy else rows)


def _who(vm: VMStatus) -> str:
    return OptedInBy[vm.asked_by.upper()].value


def _vm(explained: VMExplanation) -> Iterator[str]:
    vm = explained.vm
    if vm.pod:
        yield from _section("VM now", _now(vm))
    yield from _section("Opt-in", [f"no: {vm.not_asked}" if vm.not_asked else f"yes: {_who(vm)} is {vm.asked}"])
    rows = [
        (each.claim, each.volume or "-", each.share_manager or "-", each.node or "-", f"{each.reason}: {each.because}")
        for each in vm.volumes
    ]
    head = ("CLAIM", "VOLUME", "SHARE-MANAGER", "NODE", "WHY")
    yield from _section("Claims", columns([head, *rows]) if rows else ["none"])
    said = vm.next_start.sentence if vm.next_start else "not known"
    yield from _section("Next start", [f"with an opt-in: {said}" if vm.not_asked else said])


def _pod(explained: PodExplanation) -> Iterator[str]:
    if explained.opted_in is not None:
        because = f"{explained.reason}: {explained.sentence}"
        yield from _section("Opt-in", [f"yes: {explained.asked}" if explained.opted_in else f"no: {because}"])
    if explained.evidence:
        vms = explained.entry == Entry.SHARE_MANAGER.title
        rows = [(each.claim or "-", each.node or "-", f"{each.reason}: {each.sentence}") for each in explained.evidence]
        yield from _section("VMs" if vms else "Claims", columns([("CLAIM", "NODE", "WHY"), *rows]))
    if explained.nodes:
        results = [(each.name, f"{each.reason}: {each.sentence}") for each in explained.nodes]
        yield from _section("Nodes of the evidence", columns([("NODE", "RESULT"), *results]))
    yield from _section("Decision", _decision(explained))


def _decision(explained: PodExplanation) -> list[str]:
    nodes = explained.required or [term.node for term in explained.preferred]
    where = f" on {', '.join(nodes)}" if nodes else ""
    is_preference = explained.preferred and not explained.required and explained.entry == Entry.VIRT_LAUNCHER.title
    because = "Not required:" if is_preference else "Because:"
    rows = [("Outcome:", f"{explained.decision}{where}"), (because, f"{explained.reason}: {explained.sentence}")]
    if explained.preferred:
        rows.append(("Preferred:", ", ".join(f"{term.node} (weight {term.weight})" for term in explained.preferred)))
    if explained.shortlist:
        shortlist = f"any of {len(explained.shortlist)} nodes, so that kube-scheduler scores each of them"
        rows.append(("Short list:", f"{shortlist} (-o json lists them; the webhook can choose others)"))
    if explained.annotation is not None:
        rows.append(("Annotation:", f"{ANNOTATION_DECISION}: {explained.annotation}"))
    return columns(rows)
