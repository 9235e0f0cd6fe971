"""The candidates as a table for a terminal. Control characters of names are shown as escapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.candidates.report import CandidateItem
from webhook.core.decision import UNCHANGED
from webhook.explain.derive.notes import CLUSTER
from webhook.terminal import columns, printable

_HEAD: Final = ("NAMESPACE", "VM", "NODE", "SHARE-MANAGERS", "STATE", "OPTED-IN", "NEXT-START", "WHY")


def candidate_table(items: Sequence[CandidateItem], *, namespaces: bool, head: bool) -> list[str]:
    """Return the head and a line for each VM. `namespaces`: whether there is a column of them. `head`: its line."""
    first = 0 if namespaces else 1
    rows = [*([_HEAD] if head else []), *(tuple(map(printable, _cells(each))) for each in items)]
    return columns([row[first:] for row in rows])


def _cells(each: CandidateItem) -> tuple[str, ...]:
    share_managers = ", ".join(f"{volume.claim}: {volume.node or '-'}" for volume in each.volumes)
    return (
        each.namespace,
        each.name,
        each.node or "-",
        share_managers,
        str(each.state),
        _opted_in(each),
        _next_start(each),
        "; ".join([each.next_start.because, *(note for note in each.notes if note != CLUSTER)]),
    )


def _opted_in(each: CandidateItem) -> str:
    """Return whether the VM has opted in, and what an annotation or label says that does not opt it in."""
    if each.opted_in:
        return "yes"
    if each.annotation is not None:
        return f"no (annotation: {each.annotation})"
    return "no" if each.namespace_label is None else f"no (Namespace: {each.namespace_label})"


def _next_start(each: CandidateItem) -> str:
    """Return the decision, and its nodes."""
    next_start = each.next_start
    if next_start.followed:
        return "share-manager follows"
    if next_start.decision == UNCHANGED:
        return UNCHANGED
    rejected = " (rejected)" if next_start.rejected else ""
    return f"{next_start.decision}: {', '.join(next_start.nodes)}{rejected}"
