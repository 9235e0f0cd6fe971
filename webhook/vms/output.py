"""How a command that lists VMs prints them: VMs to standard output, sentences about them to standard error.

A table is as in kubectl. Control characters of names are shown as escapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, TextIO

from msgspec import Struct
from msgspec.structs import replace

from webhook.component_base.errors import printable
from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.virtual_machine import VM_KIND
from webhook.core.observe.next_start import next_start_of, opt_in_change
from webhook.core.observe.vm_status import STOPPED, State, VMStatus
from webhook.core.view import ClusterView
from webhook.objects.kubevirt import VirtualMachine, rules_of, shares_by_virtiofs
from webhook.objects.vm_rows import VMRow
from webhook.settings import VMListSettings
from webhook.terminal import GREEN, RED, RESET, YELLOW, padded, to_json
from webhook.vms.collected import Collected

_GAP: Final = "   "  # as in kubectl
_STATE: Final = "STATE"
_COLOR: Final[Mapping[str, str]] = {
    State.TOGETHER: GREEN,
    State.APART: RED,
    State.STUCK: RED,
    State.NOT_RUNNING: RED,
    State.PENDING: YELLOW,
    State.UNKNOWN: YELLOW,
}
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))
Cell = Callable[[VMStatus], str]


class Report(Struct, rename="camel", frozen=True, kw_only=True):
    """The VMs, as `-o json` prints them.

    Attributes:
        cluster: from where they were read.
        at: when.
        settings: those of the webhook.
        summary: how many VMs are in each state; whether an option hides them or not.
        problems: what could not be read.
        missing: the names for which there is no row.
        items: the VMs.
    """

    cluster: str
    at: str
    settings: str
    summary: Mapping[str, int]
    problems: Sequence[str]
    missing: Sequence[str]
    items: Sequence[VMStatus]


def report_of(
    found: Collected, states: Iterable[str], problems: Sequence[str], missing: Sequence[str], items: Sequence[VMStatus]
) -> Report:
    """Return the report. `states`: those of all VMs that the command looked at."""
    return Report(
        cluster=found.cluster.origin,
        at=found.cluster.objects.at,
        settings=found.webhook.sentence,
        summary={**dict.fromkeys((*State, STOPPED), 0), **Counter(states)},
        problems=problems,
        missing=missing,
        items=items,
    )


def show(  # noqa: PLR0913 - by name
    report: Report, settings: VMListSettings, output: str, columns: Mapping[str, Cell], stdout: TextIO, *, color: bool
) -> None:
    """Print the VMs in this format: json, name (as `kubectl get -o name` does), or a table with these columns.

    It goes on if the program that reads has ended: the exit code reports on the VMs.
    """
    items = report.items
    if output == "json":
        text = to_json(report)
    elif output == "name":
        text = names_of(items)
    else:
        namespaces, head = settings.all_namespaces, not settings.no_headers
        text = as_lines(table(items, columns, namespaces=namespaces, head=head, color=color))
    put(text, stdout)


def put(text: str, stdout: TextIO) -> None:
    """Write to standard output, and go on if the program that reads has ended."""
    with suppress(BrokenPipeError):
        stdout.write(text)
        stdout.flush()


def as_lines(lines: Iterable[str]) -> str:
    """Return the lines as a text."""
    return "".join(f"{line}\n" for line in lines)


def told(lines: Iterable[str]) -> str:
    """Return the lines as a text: sentences and names of others, without control characters."""
    return as_lines(map(printable, lines))


def names_of(items: Iterable[VMStatus]) -> str:
    """Return a line for each VM, as `kubectl get -o name` prints one. What is stopped has no instance."""
    kinds = ((VM_KIND if each.state == STOPPED else VMI_KIND, each.name) for each in items)
    return told(f"{kind.lower()}.kubevirt.io/{name}" for kind, name in kinds)


def unread_lines(problems: Sequence[str]) -> list[str]:
    """Return a sentence for each thing that could not be read."""
    return [f"not everything could be read: {problem}" for problem in problems]


def hints_of_each(items: Iterable[VMStatus]) -> Iterator[str]:
    """Yield a line for each hint of these VMs, by their names."""
    for each in sorted(items, key=lambda item: (item.namespace, item.name)):
        yield from (f"{each.namespace}/{each.name}: {hint}" for hint in each.hints)


def table(
    items: Sequence[VMStatus], columns: Mapping[str, Cell], *, namespaces: bool, head: bool, color: bool
) -> list[str]:
    """Return a line for each VM; none for no VM.

    Args:
        items: the VMs.
        columns: after those that every table has: the head of each, and its cell.
        namespaces: whether the table has the column NAMESPACE.
        head: whether the first line has the names of the columns.
        color: whether states have ANSI colors.
    """
    if not items:
        return []
    first: dict[str, Cell] = {"NAMESPACE": lambda item: item.namespace} if namespaces else {}
    every = {**first, **_EVERY, **columns}
    cells = [[printable(cell(item)) for cell in every.values()] for item in items]
    shown = padded([*([list(every)] if head else []), *cells])
    place = list(every).index(_STATE)
    for line, item in zip(shown[len(shown) - len(items) :], items, strict=True):
        if color and item.state in _COLOR:  # last, because a color takes no space on the screen
            line[place] = f"{_COLOR[item.state]}{line[place]}{RESET}"
    return [_GAP.join(line) for line in shown]


def node(item: VMStatus) -> str:
    """Return the VM's node, and whether the VM is leaving it."""
    return (item.node or "-") + (" (migrating)" if item.migrating else "")


def share_managers(item: VMStatus) -> str:
    """Return the node of each claim's share-manager."""
    return ", ".join(f"{volume.claim}: {volume.node or '-'}" for volume in item.volumes) or "-"


def asked(item: VMStatus) -> str:
    """Return the value that asks, or does not ask, and whose it is if it is not the VM's own."""
    return f"{item.asked} ({item.asked_by})" if item.asked and item.asked_by != "vm" else item.asked or "-"


_EVERY: Final[dict[str, Cell]] = {
    "VM": lambda item: item.name,
    "NODE": node,
    "SHARE-MANAGERS": share_managers,
    _STATE: lambda item: str(item.state),
}


@lru_cache
def age(since: str | None, now: str) -> str:
    """Return the time from `since` to `now` in at most two units; `-` for no time."""
    if not since:
        return "-"
    seconds = int((datetime.fromisoformat(now) - datetime.fromisoformat(since)) / timedelta(seconds=1))
    seconds, counts = max(0, seconds), list[str]()
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count or counts:
            counts.append(f"{count}{unit}" if count else "")
    return "".join(counts[:2]) or f"{seconds}s"


def with_next_start(row: VMRow, view: ClusterView) -> VMStatus:
    """Return the VM with what the webhook would ask for at its next start, and the command that opts it in."""
    described = row.described
    checks = rules_of(described) if described else ["the VM's own rules, which were not read"]
    start = next_start_of(row.pod, view, checks)
    vm = described if isinstance(described, VirtualMachine) else None
    change, no_change = opt_in_change(row.not_asked, row.owner, vm, row.vm.namespace)
    needs = None if described is None or start.alone is None else not start.alone
    return replace(
        row.status,
        next_start=start,
        needs_share_manager=True if described and shares_by_virtiofs(described) else needs,
        change=change,
        no_change=no_change,
    )
