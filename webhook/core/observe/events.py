"""The Events on VirtualMachineInstances: those that the webhook writes after an admission, and the last of `reunite`.

The start pod of a VM gives one Event on its VM. The target of a live migration also gives one, if the API server calls
the webhook for it. A share-manager pod gives one Event on each VM that it is steered to, or could not be steered to. No
Event: a dry run, a VM without the annotation, and other pods.

`reunite` writes Events, too (webhook.reunite.reports). An Event lives for an hour, and `reunite` repeats what
still holds. So a VM without such an Event is one that `reunite` does not look after, or `reunite` does not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct, field

from webhook.core.admit import Answer, Entry
from webhook.core.api import kubevirt
from webhook.core.api.affinity import is_node_name
from webhook.core.api.meta import UID_MAX_CHARS, ObjectMeta
from webhook.core.decision import Decision, Leave, decision_sentence
from webhook.core.evidence.facts import Finding
from webhook.core.opt_in import Mode, opts_in
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason, shortened

CO_SCHEDULED: Final = "CoScheduled"
CO_SCHEDULED_PREFERRED: Final = "CoScheduledPreferred"
NOT_CO_SCHEDULED: Final = "NotCoScheduled"
SHARE_MANAGER_STEERED: Final = "ShareManagerSteered"
SHARE_MANAGER_NOT_STEERED: Final = "ShareManagerNotSteered"
REUNITE_PREFIX: Final = "Reunite"
"""The reasons of the Events that `reunite` writes begin with it."""
Messages = Mapping[tuple[str, str], str]
"""Namespace and name of a VM -> the last message of `reunite` about the VM."""

_MESSAGE_BYTES: Final = 1023  # kubernetes pkg/apis/core/validation/events.go, NoteLengthLimit, less one
_CUT: Final = b"..."
_VMS_MAX: Final = 8  # of one volume


class Outcome(Enum):
    """The result of one Event."""

    WRITTEN = "written"
    REPEATED = "repeated"  # the recorder has written the same Event before, within its memory
    OVERFLOWED = "overflowed"  # the queue was full
    FAILED = "failed"  # no answer in time, or an error of the API server
    REFUSED = "refused"  # the API server rejected it, and would reject it again
    STOPPED = "stopped"  # the program ended first


class Event(Struct, frozen=True, kw_only=True):
    """The content of one Event on the VirtualMachineInstance of this namespace, name and uid."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = False


def may_have_events(answer: Answer) -> bool:
    """Whether the answer can have an Event. This check is cheap, because it runs for every call."""
    decision, columns = answer.decision, answer.decision.why.reason.columns
    if answer.request.dry_run:
        return False
    return not isinstance(decision, Leave) or decision.opted_in or columns.fault or _is_unclear(decision)


def events_for(answer: Answer, entry: Entry) -> list[Event]:
    """Return the Events for this answer; none that the API server would reject for its uid or names."""
    if not may_have_events(answer):
        return []
    events = _of_share_manager(answer) if entry is Entry.SHARE_MANAGER else _of_virt_launcher(answer)
    return [event for event in events if _is_accepted(event)]


def _is_accepted(event: Event) -> bool:
    """Whether the API server takes the Event. The uid of a watched pod's owner can have any length."""
    return 0 < len(event.uid) <= UID_MAX_CHARS and is_node_name(event.namespace) and is_node_name(event.name)


def _of_virt_launcher(answer: Answer) -> Iterator[Event]:
    request, decision, pod = answer.request, answer.decision, answer.pod
    owner = kubevirt.owner(pod) if pod else None
    if pod is None or owner is None:
        return
    reason, message = NOT_CO_SCHEDULED, str(decision.why)
    if not isinstance(decision, Leave):
        reason = CO_SCHEDULED if decision.strength is Mode.REQUIRED else CO_SCHEDULED_PREFERRED
        message = decision_sentence(decision)
    elif not (decision.opted_in or _is_unclear(decision) or opts_in(pod.metadata.annotation(ANNOTATION_CO_SCHEDULE))):
        return
    yield Event(
        namespace=request.namespace or pod.metadata.namespace or "",
        name=owner.name or "",
        uid=owner.uid or "",
        reason=reason,
        message=_short(message),
        warning=_warns(decision),
    )


def _warns(decision: Decision) -> bool:
    return isinstance(decision, Leave) and not decision.why.reason.columns.intended


def _is_unclear(decision: Decision) -> bool:
    """Whether somebody tried to opt the VM in by a wrong value, or its Namespace can't be read."""
    reason = decision.why.reason
    return reason.columns.wrong_value or reason is Reason.NAMESPACE_LOOKUP_FAILED


def _of_share_manager(answer: Answer) -> Iterator[Event]:
    decision, reason, nodes = answer.decision, SHARE_MANAGER_NOT_STEERED, None
    message = str(decision.why)
    if not isinstance(decision, Leave):
        reason, nodes, message = SHARE_MANAGER_STEERED, decision.nodes, decision_sentence(decision)
    for finding in _by_vm(decision.findings):
        if nodes is None or finding.node in nodes:
            vm = finding.vmi
            yield Event(
                namespace=vm.namespace if vm else "",
                name=str(finding.why.names.get("vm", "")),
                uid=vm.uid if vm else "",
                reason=reason,
                message=_short(f"share-manager of volume {finding.volume_handle}: {message}"),
                warning=_warns(decision),
            )


def _by_vm(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding for each VM that is known to be on a node, at most 8."""
    by_vmi = {finding.vmi: finding for finding in findings if finding.vmi and finding.node}
    return list(by_vmi.values())[:_VMS_MAX]


def _short(message: str) -> str:
    """Return the message, cut to the length that the API server accepts."""
    text = message.encode(errors="replace")
    if len(text) <= _MESSAGE_BYTES:
        return text.decode()
    return text[: _MESSAGE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT.decode()


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
    return event.involved_object.kind == kubevirt.VMI_KIND and event.reason.startswith(REUNITE_PREFIX)
