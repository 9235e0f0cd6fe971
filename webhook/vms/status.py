"""The command status: read a cluster once, and print the VMs that ask for co-scheduling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from webhook.core.observe.vm_status import (
    COMPARED,
    SEVERITY,
    TROUBLED,
    State,
    VMStatus,
    count_causes,
    count_states,
    percent_together,
)
from webhook.invocation import Invocation
from webhook.objects.objects import parts_of_rows
from webhook.objects.unread import of_remedies
from webhook.objects.vm_rows import asking, where_else
from webhook.settings import StatusSettings
from webhook.vms.collected import Collected, collect, exit_code, without_collections
from webhook.vms.output import Cell, age, asked, hints_of_each, report_of, show, told, unread_lines


@without_collections()
def run(settings: StatusSettings, *, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings. `color`: whether `stdout` takes ANSI colors. Returns the exit code.

    Returns:
        2 if something could not be read, or a VM does not exist. 1 if a VM is in trouble; of named VMs if one is not
        together. Else 0.

    Raises:
        UserError: no cluster can be reached, or the pods of its VMs can't be read.
    """
    found, invocation = collect(settings, parts_of_rows), Invocation.of(settings)
    statuses = sorted(asking(found.rows), key=lambda each: (SEVERITY[each.state], each.namespace, each.name))
    names, existing = {each.name for each in statuses}, {row.vm.name for row in found.rows}
    missing = [name for name in found.names if name not in names]
    items = [each.shown_by(invocation) for each in statuses if not settings.apart or each.state in TROUBLED]
    report = report_of(found, (each.state for each in statuses), found.problems, missing, items)
    show(report, settings, settings.output, _columns(settings, report.at), stdout, color=color)
    counted = summary(statuses, apart=settings.apart) if statuses else _nobody(found)
    remarks = [*found.remarks, *(of_remedies(found.cluster) if any(each.remedy for each in statuses) else ())]
    lines = [*remarks, *hints_of_each([row.status for row in found.rows]), *unread_lines(found.problems)]
    absent = [_absence(name, found, invocation) for name in missing]
    stderr.write(told([*found.first, *counted.split("\n"), *lines, *absent]))
    return exit_code(
        unknown=found.problems
        or any(name not in existing for name in missing)
        or any(each.state is State.UNKNOWN for each in statuses),
        no=missing
        or any(each.state in TROUBLED or (found.names and each.state is not State.TOGETHER) for each in statuses),
    )


def summary(statuses: Sequence[VMStatus], *, apart: bool) -> str:
    """Return how many VMs there are, in each state, and those in trouble by cause; for at least one VM.

    `apart`: whether these alone are shown.
    """
    counts, causes = count_states(statuses), count_causes(statuses)
    states = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    percent, compared = percent_together(counts), sum(counts[state] for state in COMPARED)
    of = "" if compared == len(statuses) else f" of the {compared} that can be compared"
    share = "" if percent is None else f"; {percent} % together{of}"
    counted = f"{len(statuses)} VM{'s' if len(statuses) > 1 else ''}: {states}{share}"
    if not causes:
        return counted
    hint = "" if apart or sum(causes.values()) == len(statuses) else "; these alone: --apart"
    return f"{counted}\nwhy: {', '.join(f'{cause} ({count})' for cause, count in causes.items())}{hint}"


def _columns(settings: StatusSettings, at: str) -> Mapping[str, Cell]:
    """The columns of this table; ages count until `at`."""
    since: dict[str, Cell] = {"SINCE": lambda item: age(item.since, at)}
    return since | (_WIDE if settings.output == "wide" else {"WHY": _reason})


def _reason(item: VMStatus) -> str:
    return "-" if item.state is State.TOGETHER else item.reason


def _evidence(item: VMStatus) -> str:
    """The evidence, what to do, and what `reunite` last said."""
    if item.state is State.TOGETHER:
        return "-"
    to_do = f"; to do: {item.to_do}" if item.remedy else ""
    return f"{item.why}{to_do}{f'; reunite: {item.reunite}' if item.reunite else ''}"


def _volumes(item: VMStatus) -> str:
    named = (f"{each.volume} ({each.share_manager or 'no ShareManager'})" for each in item.volumes if each.volume)
    return ", ".join(named) or "-"


_WIDE: Final[dict[str, Cell]] = {
    "SINCE-TIME": lambda item: item.since or "-",
    "POD": lambda item: item.pod or "-",
    "ASKED": asked,
    "DECIDED": lambda item: item.decided or "-",
    "VOLUMES": _volumes,
    "WHY": _evidence,
}


def _nobody(found: Collected) -> str:
    """The sentence for an empty result: where the program looked, and how to see other VMs."""
    if found.names:
        return f"none of these VMs runs and asks for co-scheduling in {found.where}"
    sentence = f"no running VM{found.whose} asks for co-scheduling in {found.where}"
    if not found.namespace:
        return sentence
    elsewhere = sum(each.namespace != found.namespace for each in asking(found.all_rows))
    others = f"{elsewhere} in other namespaces" if elsewhere else "VMs of other namespaces"
    return f"{sentence}; to see {others}: --all-namespaces"


def _absence(name: str, found: Collected, invocation: Invocation) -> str:
    """Why a named VM is not shown, and what to type next."""
    here = next((row for row in found.rows if row.vm.name == name), None)
    if here:
        why = f"does not ask for co-scheduling: {here.not_asked}" if here.not_asked else "does not run"
        explained = invocation.line(f"explain {here.status.kind}/{name} -n {here.vm.namespace}")
        return f"{name}: the VM in namespace {here.vm.namespace} {why}; {explained}"
    sentence = f"{name}: no VM of this name runs and asks for co-scheduling in {found.where}"
    explained = invocation.line(f"explain vm/{name} -n {found.namespace or 'NAMESPACE'}")
    return f"{sentence}{where_else(name, found.namespace, found.all_rows) or f'; try: {explained}'}"
