"""What a run of `reunite` reports of each VM: at a terminal, in a pod's log, as YAML for kubectl, and as Events.

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
from webhook.core.reunite.waits import STARTED, unix_seconds
from webhook.telemetry.record import LOGGER
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
    """What a run did about one VM, or why it did nothing."""

    namespace: str
    vm: str
    reason: EventReason
    message: str

    @property
    def action(self) -> str:
        """Whether it migrates the VM, or would: migrate or none."""
        return "migrate" if self.reason in (EventReason.STARTED, EventReason.DRY_RUN) else "none"

    @property
    def failed(self) -> bool:
        """Whether the program could not do what it decided."""
        return self.reason is EventReason.REFUSED


class EventsBefore:
    """The Events of `reunite` that the cluster has.

    An Event belongs to one VirtualMachineInstance. That of the VM's next start is another one, of the same name.
    """

    def __init__(self, events: Iterable[ReuniteEvent], now: float) -> None:
        self._now = now
        self._at: dict[tuple[str, str, str], float] = {}  # by the VMI's uid, reason and message
        self._last: dict[str, float] = {}  # by the VMI's uid
        for event in filter(is_of_reunite, events):
            uid, at = event.involved_object.uid, unix_seconds(event.last_timestamp or "")
            self._at[uid, event.reason, event.message] = at
            self._last[uid] = max(at, self._last.get(uid, 0.0))

    def last(self, event: Event) -> float:
        """When the VMI got its last Event; 0 for never. So one run that can't write all leaves out nobody."""
        return self._last.get(event.uid, 0.0)

    def is_new(self, event: Event) -> bool:
        """Whether the VMI has no Event that says this, or only an old one."""
        return self._at.get((event.uid, event.reason, event.message), 0.0) <= self._now - REPEAT_SECONDS


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


_NOBODY: Final = "nothing to do: no VM that asks for co-scheduling was found"


def log(reports: Iterable[VMReport], *, dry_run: bool) -> None:
    """Write a log line for each VM."""
    for each in reports:
        fields = {"namespace": each.namespace, "vm": each.vm, "action": each.action, "because": each.message}
        level = LOGGER.warning if each.failed else LOGGER.info
        level("would" if dry_run else "reunite", extra={"fields": {**fields, "reason": each.reason.code}})


def print_table(reports: Sequence[VMReport], rows: Sequence[VMStatus], stdout: TextIO) -> None:
    """Print a line for each VM: what is or would be done, or the first rule that says no."""
    if not reports:
        stdout.write(f"{nothing_to_do(rows)}\n")
        return
    lines = [("NAMESPACE", "VM", "ACTION", "WHY")]
    lines += [(each.namespace, each.vm, each.action, each.message) for each in reports]
    shown = padded([[printable(cell) for cell in line] for line in lines])
    with suppress(BrokenPipeError):  # the Events are still to be written
        stdout.writelines("   ".join(cells).rstrip() + "\n" for cells in shown)


def print_list(
    reports: Sequence[VMReport],
    migrations: Mapping[tuple[str, str], Mapping[str, Any]],
    rows: Sequence[VMStatus],
    origin: str,
    stdout: TextIO,
) -> None:
    """Print the migrations as YAML. Comments say why, for each VM; a VM without a migration has a comment only."""
    is_empty = all(each.action != "migrate" for each in reports)
    stdout.writelines(f"# {printable(line)}\n" for line in (origin, *(() if is_empty else _HEADER)))
    for each in reports:
        migration = migrations.get((each.namespace, each.vm)) if each.action == "migrate" else None
        stdout.write("---\n" if migration else "\n")
        stdout.write(f"# {printable(f'{each.namespace}/{each.vm}: {each.message}')}\n")
        stdout.write(to_yaml(migration) if migration else "")
    if not reports:
        stdout.write(f"# {nothing_to_do(rows)}\n")


def nothing_to_do(rows: Sequence[VMStatus]) -> str:
    """Return in which states the VMs are, of which none is apart."""
    counts = ", ".join(f"{count} {state}" for state, count in count_states(rows).items() if count)
    stuck = "; `status` names what frees those that are stuck" if any(row.state is State.STUCK for row in rows) else ""
    return f"nothing to do: none of {len(rows)} VMs is apart ({counts}){stuck}" if rows else _NOBODY
