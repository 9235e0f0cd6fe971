"""An explanation as text for a terminal: sections with aligned columns as in `kubectl describe`.

Invariant: everything shown is in the explanation. Names come from files, so control characters are shown as escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.core.admit import Entry
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import OptedInBy
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.explain.explanation import Explanation, PodExplanation, VMExplanation
from webhook.terminal import columns, printable

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
