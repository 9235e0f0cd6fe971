"""The last message of `reunite` about each VM, from the Events that it writes (webhook.core.reunite.reports).

An Event lives for an hour, and `reunite` repeats what still holds. So a VM without such an Event is one that `reunite`
does not look after, or `reunite` does not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.api.meta import ObjectMeta
from webhook.core.observe.events import REUNITE_PREFIX
from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.reasons import shortened

Messages = Mapping[tuple[str, str], str]
"""Namespace and name of a VM -> the last message of `reunite` about the VM."""


class InvolvedObject(Struct, frozen=True):
    """v1.ObjectReference: the VirtualMachineInstance."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ReuniteEvent(Struct, frozen=True, rename="camel"):
    """v1.Event, as far as it is decoded."""

    metadata: ObjectMeta
    involved_object: InvolvedObject = field(default_factory=InvolvedObject)
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None


def latest(events: Iterable[ReuniteEvent]) -> Messages:
    """Return the last of these Events for each VM, with its time.

    Event names end with their time, and so order the Events of one second.
    """
    ours = (event for event in events if is_of_reunite(event))
    ordered = sorted(ours, key=lambda event: (event.last_timestamp or "", event.metadata.name or ""))
    return {(event.involved_object.namespace, event.involved_object.name): _dated(event) for event in ordered}


def _dated(event: ReuniteEvent) -> str:
    return shortened(f"at {event.last_timestamp}: {event.message}" if event.last_timestamp else event.message)


def is_of_reunite(event: ReuniteEvent) -> bool:
    """Whether `reunite` wrote the Event."""
    return event.involved_object.kind == VMI_KIND and event.reason.startswith(REUNITE_PREFIX)


def with_messages(rows: Sequence[VMStatus], messages: Messages) -> list[VMStatus]:
    """Return the rows. Those that are apart have the last message of `reunite` about them."""
    return [
        replace(row, said_by_reunite=messages.get((row.namespace, row.name), "")) if row.state is State.APART else row
        for row in rows
    ]
