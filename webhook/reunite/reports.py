"""What a run of `reunite` reports of each VM: as a table, as JSON, as YAML for kubectl, and as Events.

An API server keeps an Event for an hour, and `status` shows the last one. So a run repeats what still holds after half
an hour. The Events in the cluster say what earlier runs reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, unique
from typing import Any, Final, TextIO

from msgspec import Struct
from msgspec.structs import replace

from webhook.component_base.errors import printable
from webhook.core.observe.events import Event, ReuniteEvent, is_of_reunite
from webhook.core.observe.vm_status import Shows, State, VMStatus, count_states
from webhook.reunite.waits import STARTED, unix_seconds
from webhook.terminal import padded, to_json, to_yaml
from webhook.vms.output import age, as_lines, node, put, share_managers

REPEAT_SECONDS: Final = 1_800.0


@unique
class EventReason(Enum):
    """Each Event: its reason, its type, and when it is written. The table in docs is made from it."""

    def __init__(self, code: str, kind: str, when: str) -> None:
        self.code = code
        self.kind = kind
        self.when = when

    WAITING = "ReuniteWaiting", "Normal", "the VM is apart and stays so: the first rule that says no"
    DRY_RUN = "ReuniteDryRun", "Normal", "what `reunite` would do with `--dry-run=none`"
    STARTED = STARTED, "Normal", "a migration to the node of the share-managers was created"
    REFUSED = "ReuniteRefused", "Warning", "the API server or KubeVirt refused the migration"


class VMReport(Struct, frozen=True):
    """What a run did about one VM, or why it did nothing. `listed`: its migration in a list for kubectl."""

    row: VMStatus
    reason: EventReason
    message: str
    listed: Mapping[str, Any] | None = None

    @property
    def action(self) -> str:
        """Whether it migrates the VM, or would: migrate or none."""
        return "migrate" if self.reason in (EventReason.STARTED, EventReason.DRY_RUN) else "none"

    def shown_by(self, invocation: Shows) -> VMReport:
        """Return it with all commands for the cluster in which the VM is. An Event is in that cluster itself."""
        return replace(self, row=self.row.shown_by(invocation), message=invocation.addressed(self.message))

    @property
    def failed(self) -> bool:
        """Whether the program could not do what it decided."""
        return self.reason is EventReason.REFUSED


def written_at(events: Iterable[ReuniteEvent]) -> Mapping[tuple[str, str, str, str], float]:
    """Return when the cluster got its last Event, by namespace, the VMI's uid, reason and message.

    An Event belongs to one VirtualMachineInstance. That of the VM's next start is another one, of the same name.
    """
    written = dict[tuple[str, str, str, str], float]()
    for each in sorted(filter(is_of_reunite, events), key=lambda event: event.last_timestamp or ""):
        key = each.metadata.namespace or "", each.involved_object.uid, each.reason, each.message
        written[key] = unix_seconds(each.last_timestamp or "")
    return written


def event_of(report: VMReport, uid: str, *, dry_run: str) -> Event:
    """Return the Event of a report, on the VirtualMachineInstance of this uid."""
    return Event(
        namespace=report.row.namespace,
        name=report.row.name,
        uid=uid,
        reason=report.reason.code,
        message=report.message if dry_run == "none" else f"{report.message}; --dry-run={dry_run}",
        warning=report.reason.kind == "Warning",
    )


_HEADER: Final = (
    "To create these migrations: kubectl create -f - (they have a generateName, so kubectl apply refuses them).",
    "Since KubeVirt 1.5.0 the role admin may only read migrations: an administrator binds the ClusterRole",
    "kubevirt.io:migrate to you. KubeVirt needs version 1.6.0 or newer.",
    "A VM keeps the node selector of its migration until its next migration or start. Until then a descheduler with",
    "nodeFit does not evict the VM.",
)


_TABLE: Final[Mapping[str, Callable[[VMReport], str]]] = {
    "NAMESPACE": lambda each: each.row.namespace,
    "VM": lambda each: each.row.name,
    "ACTION": lambda each: each.action,
    "WHY": lambda each: each.message,
}


def print_table(reports: Sequence[VMReport], nothing: str, at: str, stdout: TextIO, *, wide: bool = False) -> None:
    """Print a line for each VM: what is or would be done, or the first rule that says no; `nothing` without a VM.

    `wide`: also where the VM and its share-managers are, and for how long until `at`.
    """
    if not reports:
        stdout.write(f"{nothing}\n")
        return
    table = dict(_TABLE)
    if wide:
        table["NODE"] = lambda each: node(each.row)
        table["SHARE-MANAGERS"] = lambda each: share_managers(each.row)
        table["SINCE"] = lambda each: age(each.row.since, at)
        table["WHY"] = table.pop("WHY")
    lines = [list(table), *([cell(each) for cell in table.values()] for each in reports)]
    put(as_lines("   ".join(cells).rstrip() for cells in padded([[*map(printable, line)] for line in lines])), stdout)


def print_json(reports: Sequence[VMReport], rows: Sequence[VMStatus], stdout: TextIO, **about: str) -> None:
    """Print `about`, how many of the `rows` are in each state, and an item for each line of the table."""
    items = [
        {"action": each.action, "reason": each.reason.code, "message": each.message, "vm": each.row} for each in reports
    ]
    put(to_json({**about, "summary": count_states(rows), "items": items}), stdout)


def print_list(reports: Sequence[VMReport], nothing: str, origin: str, invocation: Shows, stdout: TextIO) -> None:
    """Print the migrations as YAML. Comments say why, for each VM; a VM without a migration has a comment only.

    Without a VM the comment is `nothing`.
    """
    header = map(invocation.addressed, _HEADER) if any(each.listed for each in reports) else ()
    stdout.writelines(f"# {printable(line)}\n" for line in (origin, *header))
    for each in reports:
        stdout.write("---\n" if each.listed else "\n")
        stdout.write(f"# {printable(f'{each.row.namespace}/{each.row.name}: {each.message}')}\n")
        stdout.write(to_yaml(each.listed) if each.listed else "")
    if not reports:
        stdout.write(f"# {nothing}\n")


def nothing_to_do(rows: Sequence[VMStatus], chosen: str) -> str:
    """Return in which states the VMs are, of which none is apart. `chosen`: which VMs, after the word VM."""
    if not rows:
        return f"nothing to do: no VM{chosen} runs and asks for co-scheduling"
    counts = ", ".join(f"{count} {state}" for state, count in count_states(rows).items() if count)
    stuck = "; `status` names what frees those that are stuck" if any(row.state is State.STUCK for row in rows) else ""
    vms = "VM" if len(rows) == 1 else "VMs"
    known = "known to be " if any(row.state is State.UNKNOWN for row in rows) else ""
    return f"nothing to do: {len(rows)} {vms}{chosen}, none {known}apart ({counts}){stuck}"
