"""The candidates as a table for a terminal. Control characters of names are shown as escapes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from webhook.candidates.report import CandidateItem
from webhook.terminal import columns, printable

_NAMED: Final = 3
_HEAD: Final = (
    "NAMESPACE",
    "VM",
    "NODE",
    "SHARE-MANAGERS",
    "STATE",
    "OPTED-IN",
    "NEXT-START",
    "NEEDS-SHARE-MANAGER",
    "WHY",
)
_NEEDS: Final = {True: "yes", False: "no", None: "-"}


def candidate_table(items: Sequence[CandidateItem], *, namespaces: bool, head: bool, wide: bool) -> list[str]:
    """Return the head and a line for each VM.

    `namespaces`: whether there is a column of them. `head`: whether there is one. `wide`: whether WHY has the evidence.
    """
    first = 0 if namespaces else 1
    rows = [*([_HEAD] if head else []), *(tuple(map(printable, _cells(each, wide=wide))) for each in items)]
    return columns([row[first:] for row in rows])


def _cells(each: CandidateItem, *, wide: bool) -> tuple[str, ...]:
    share_managers = ", ".join(f"{volume.claim}: {volume.node or '-'}" for volume in each.volumes)
    return (
        each.namespace,
        each.name,
        each.node or "-",
        share_managers,
        str(each.state),
        _opted_in(each),
        _next_start(each),
        _NEEDS[each.needs_share_manager],
        "; ".join([each.next_start.sentence(each.checks), *each.next_start.unread, *each.notes])
        if wide
        else each.next_start.cause,
    )


def notes(items: Iterable[CandidateItem]) -> Iterator[str]:
    """Yield what is not known of the next pod of some VMs, or is wrong with them: a sentence with names each."""
    names_of: dict[str, list[str]] = defaultdict(list)
    for each in items:
        for note in each.notes:
            names_of[note].append(each.name)
    for note, names in names_of.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield printable(f"{', '.join(names[:_NAMED])}{more}: {note}")


def _opted_in(each: CandidateItem) -> str:
    """Return whether the VM has opted in, and what an annotation or label says that does not opt it in."""
    if each.opted_in:
        return "yes"
    if each.annotation is not None:
        return f"no (annotation: {each.annotation})"
    return "no" if each.namespace_label is None else f"no (Namespace: {each.namespace_label})"


def _next_start(each: CandidateItem) -> str:
    """Return what the webhook would ask for; the VM's own rules are in the wide table."""
    next_start = each.next_start
    if not next_start.gains:
        return "-"
    return "share-manager follows" if next_start.followed else f"asks for {', '.join(next_start.nodes)}"
