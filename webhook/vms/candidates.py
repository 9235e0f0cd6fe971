"""The command candidates: read a cluster once, and print for each VM that does not ask what the webhook would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TextIO

from webhook.component_base.errors import printable
from webhook.core.observe.vm_status import SEVERITY, STOPPED, TROUBLED, NextStart, State, VMStatus
from webhook.core.observe.vm_volumes import has_share_manager
from webhook.invocation import Invocation
from webhook.objects.kinds import LONGHORN_NODE, NODE, VIRTUAL_MACHINE
from webhook.objects.objects import parts_of_all
from webhook.objects.vm_rows import where_else
from webhook.settings import CandidatesSettings
from webhook.vms.collected import Collected, collect, exit_code, without_collections
from webhook.vms.output import (
    Cell,
    as_lines,
    asked,
    hints_of_each,
    put,
    report_of,
    show,
    told,
    unread_lines,
    with_next_start,
)

_A_DISK: Final = "a disk with a share-manager"
_TABLES: Final = ("table", "wide")
_NEEDS: Final = {True: "yes", False: "no", None: "-"}


@without_collections()
def run(settings: CandidatesSettings, *, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings. `color`: whether `stdout` takes ANSI colors.

    Returns:
        0 if the report is complete. 2 if something that counts could not be read, and if no VM has one of the names.

    Raises:
        UserError: no cluster can be reached, its pods can't be read, or Longhorn's namespace has no ShareManager.
    """
    found, invocation = collect(settings, lambda _: parts_of_all()), Invocation.of(settings)
    served = [row for row in found.rows if has_share_manager(row.status.volumes)]
    items = [with_next_start(row, found.cluster).shown_by(invocation) for row in served if row.not_asked]
    items.sort(key=_order)
    not_known, unread = found.cluster.objects.problem(VIRTUAL_MACHINE), found.cluster.unread
    of_nodes = [f"{kind.title}: {unread(kind)}" for kind in (NODE, LONGHORN_NODE) if items and unread(kind)]
    problems = [*found.problems, *of_nodes]
    asking = len(served) - len(items)
    missing = [name for name in found.names if name not in {row.vm.name for row in served}]
    shown = [each for each in items if not settings.apart or each.state in TROUBLED]
    report = report_of(found, (str(each.state) for each in items), problems, missing, shown)
    if settings.output == "commands":
        put(as_lines(_commands(shown)), stdout)
    else:
        show(report, settings, settings.output, _WIDE if settings.output == "wide" else _TABLE, stdout, color=color)
    vm, has = "running VM" if not_known else "VM", "is known to have" if problems else "has"
    lines = [
        *found.first,
        *_counted(items, asking, found, problems, vm).split("\n"),
        *found.remarks,
        *_notes(shown, settings.output),
        *hints_of_each(shown),
    ]
    if not_known:
        lines.append(f"only VMs that run are shown: {not_known}")
    none = f"no {vm} of this name in {found.where} {has} {_A_DISK}"
    absent = [f"{name}: {none}{where_else(name, found.namespace, found.all_rows)}" for name in missing]
    stderr.write(told([*lines, *unread_lines(problems), *absent]))
    return exit_code(unknown=missing or problems, no=False)


def _start(item: VMStatus) -> NextStart:
    assert item.next_start  # noqa: S101 - for the type checker: each candidate has one
    return item.next_start


def _order(item: VMStatus) -> tuple[bool, int, str, str]:
    """A sort key: what would gain comes first, and of that what is apart now."""
    return not _start(item).gains, SEVERITY[item.state], item.namespace, item.name


def _next_start(item: VMStatus) -> str:
    """What the webhook would ask for; the VM's own rules are in the wide table."""
    start = _start(item)
    if not start.gains:
        return "-"
    return "share-manager follows" if start.followed else f"asks for {', '.join(start.nodes)}"


_COLUMNS: Final[dict[str, Cell]] = {
    "ASKED": asked,
    "NEXT-START": _next_start,
    "NEEDS-SHARE-MANAGER": lambda item: _NEEDS[item.needs_share_manager],
}
_TABLE: Final[Mapping[str, Cell]] = {**_COLUMNS, "WHY": lambda item: _start(item).reason}
_WIDE: Final[Mapping[str, Cell]] = {
    **_COLUMNS,
    "WHY": lambda item: "; ".join([_start(item).sentence, *_start(item).unread]),
}


def _commands(items: Iterable[VMStatus]) -> Iterator[str]:
    """The lines that opt the VMs in; a comment for each VM without one."""
    for each in items:
        yield each.change or f"# {printable(f'{each.namespace}/{each.name}: {each.no_change}')}"


def _counted(items: Sequence[VMStatus], asking: int, found: Collected, problems: Sequence[str], vm: str) -> str:
    """How many VMs there are, how many of them ask, are apart or stopped, or would gain, and why."""
    if not items and not asking:
        return f"no {vm}{found.whose} in {found.where} {'is known to have' if problems else 'has'} {_A_DISK}"
    apart, stopped = (sum(each.state == state for each in items) for state in (State.APART, STOPPED))
    total, known = len(items) + asking, "known to be " if problems else ""
    vms = f"{total} VM{'' if total == 1 else 's'}"
    first = (
        f"not everything could be read: of {vms} that have a share-manager or may have one, {asking}"
        if problems
        else f"{vms} with a share-manager, {asking} of them"
    )
    first += f" opted in (see status); {len(items)} not opted in: {apart} {known}apart"
    gaining = f"{sum(_start(each).gains for each in items)} would gain{', by what was read' if problems else ''}"
    first += f"{f', {stopped} stopped' if stopped else ''}, {gaining}"
    causes = Counter(_start(each).reason for each in items)
    return f"{first}\nwhy: {', '.join(f'{cause} ({n})' for cause, n in causes.most_common())}" if causes else first


def _notes(items: Sequence[VMStatus], output: str) -> Iterator[str]:
    """What a reader of these VMs must know besides: a sentence each."""
    if output in _TABLES and any(each.change for each in items):
        yield "the lines that opt VMs in: --output commands"
    if output in _TABLES and any(_start(each).nodes for each in items):
        yield "kube-scheduler and the webhook's rules then check each VM's own rules: --output wide"
    if any(each.needs_share_manager is False for each in items):
        yield (
            "NEEDS-SHARE-MANAGER no: nobody else uses its volumes, so block volumes of a StorageClass with "
            'migratable: "true" would do, and such volumes have no share-manager'
        )
