"""What a run of `reunite` reports of each VM: as a table, as YAML for kubectl, and as Events.

An API server keeps an Event for an hour, and `status` shows the last one. So a run repeats what still holds after half
an hour. The Events in the cluster say what earlier runs reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, unique
from typing import Any, Final, TextIO

from msgspec import Struct

from webhook.core.observe.events import Event, ReuniteEvent, is_of_reunite
from webhook.core.observe.vm_status import State, VMStatus, count_states
from webhook.reunite.waits import STARTED, unix_seconds
from webhook.terminal import padded, printable, to_yaml

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

    namespace: str
    vm: str
    reason: EventReason
    message: str
    listed: Mapping[str, Any] | None = None

    @property
    def action(self) -> str:
        """Whether it migrates the VM, or would: migrate or none."""
        return "migrate" if self.reason in (EventReason.STARTED, EventReason.DRY_RUN) else "none"

    @property
    def failed(self) -> bool:
        """Whether the program could not do what it decided."""
        return self.reason is EventReason.REFUSED


def written_at(events: Iterable[ReuniteEvent]) -> Mapping[tuple[str, str, str], float]:
    """Return when the cluster got its last Event, by the VMI's uid, reason and message.

    An Event belongs to one VirtualMachineInstance. That of the VM's next start is another one, of the same name.
    """
    return {
        (each.involved_object.uid, each.reason, each.message): unix_seconds(each.last_timestamp or "")
        for each in sorted(filter(is_of_reunite, events), key=lambda event: event.last_timestamp or "")
    }


def event_of(report: VMReport, uid: str, *, dry_run: str) -> Event:
    """Return the Event of a report, on the VirtualMachineInstance of this uid."""
    return Event(
        namespace=report.namespace,
        name=report.vm,
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


def print_table(reports: Sequence[VMReport], nothing: str, stdout: TextIO) -> None:
    """Print a line for each VM: what is or would be done, or the first rule that says no; `nothing` without a VM."""
    if not reports:
        stdout.write(f"{nothing}\n")
        return
    lines = [("NAMESPACE", "VM", "ACTION", "WHY")]
    lines += [(each.namespace, each.vm, each.action, each.message) for each in reports]
    shown = padded([[printable(cell) for cell in line] for line in lines])
    with suppress(BrokenPipeError):  # the Events are still to be written
        stdout.writelines("   ".join(cells).rstrip() + "\n" for cells in shown)


def print_list(reports: Sequence[VMReport], nothing: str, origin: str, stdout: TextIO) -> None:
    """Print the migrations as YAML. Comments say why, for each VM; a VM without a migration has a comment only.

    Without a VM the comment is `nothing`.
    """
    header = _HEADER if any(each.listed for each in reports) else ()
    stdout.writelines(f"# {printable(line)}\n" for line in (origin, *header))
    for each in reports:
        stdout.write("---\n" if each.listed else "\n")
        stdout.write(f"# {printable(f'{each.namespace}/{each.vm}: {each.message}')}\n")
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
    return f"nothing to do: {len(rows)} {vms}{chosen}, none apart ({counts}){stuck}"
