"""What a run of `reunite` reports of each VM, and the Events on the VirtualMachineInstances.

An API server keeps an Event for an hour, and `status` shows the last one. So a run repeats what still holds after half
an hour. The Events in the cluster say what earlier runs reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from webhook.core.observe.events import Event, ReuniteEvent, is_of_reunite
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.waits import EVENT_SECONDS, STARTED, unix_seconds

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
    SUCCEEDED = "ReuniteSucceeded", "Normal", "such a migration has ended, and the VM is on its node"
    FAILED = "ReuniteFailed", "Warning", "such a migration has failed, and the VM has stayed"
    REFUSED = "ReuniteRefused", "Warning", "the API server or KubeVirt refused the migration"


class VMReport(Struct, frozen=True, kw_only=True):
    """What a run did about one VM, or why it did nothing.

    `action`: migrate, ended or none. `failed`: whether the program could not do what it decided.
    """

    namespace: str
    vm: str
    action: str
    reason: EventReason
    message: str
    failed: bool = False


def ended(situation: Situation) -> Iterator[VMReport]:
    """Yield the migrations of `reunite` that ended while an Event about it can exist, and the VM still runs."""
    started = {vm.key: vm.started for vm in situation.vms}
    for each in situation.migrations:
        is_of_this_start = each.vm in started and each.created >= started[each.vm]
        if (
            each.ours
            and each.is_final
            and is_of_this_start
            and unix_seconds(each.ended) > situation.now - EVENT_SECONDS
        ):
            namespace, vm = each.vm
            state = each.state
            where = f"migration {each.name} to node {state.target_node or 'unknown'}"
            because = f": {state.failure_reason}" if state.failure_reason else ""
            reason = EventReason.SUCCEEDED if each.succeeded else EventReason.FAILED
            message = f"{where} succeeded" if each.succeeded else f"{where} failed{because}"
            yield VMReport(namespace=namespace, vm=vm, action="ended", reason=reason, message=message)


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

    def is_new(self, event: Event, *, once: bool) -> bool:
        """Whether the VMI has no Event that says this, or only an old one; with `once`, none at all."""
        at = self._at.get((event.uid, event.reason, event.message))
        return at is None or (not once and at <= self._now - REPEAT_SECONDS)


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
