"""What an admission is told as on the VirtualMachineInstance that it is about: the content of its Events.

A VM's start pod is told on its VM; a share-manager pod on the VMs that it follows, or could not follow. Nothing is told
of a dry run, of a VM that did not ask, or of a pod that is not ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from msgspec import Struct

from webhook.core.admit import Answer, Entry
from webhook.core.api import kubevirt
from webhook.core.api.names import is_node_name
from webhook.core.decision import Leave
from webhook.core.evidence.finding import Finding
from webhook.core.observe import vm_status
from webhook.core.opt_in import Mode
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, Reason

CO_SCHEDULED: Final = "CoScheduled"
CO_SCHEDULED_PREFERRED: Final = "CoScheduledPreferred"
NOT_CO_SCHEDULED: Final = "NotCoScheduled"
SHARE_MANAGER_STEERED: Final = "ShareManagerSteered"
SHARE_MANAGER_NOT_STEERED: Final = "ShareManagerNotSteered"

_MESSAGE_BYTES: Final = 1023  # kubernetes pkg/apis/core/validation/events.go, NoteLengthLimit, less one
_CUT: Final = b"..."
_VMS_MAX: Final = 8  # on one volume; as many as its share-manager pod is drawn to

_ASKED_IN_VAIN: Final = frozenset({Reason.BAD_CO_SCHEDULE, Reason.INTERNAL_ERROR, Reason.PATCH_NOT_PROVEN})
_NOTHING_WRONG: Final = frozenset(  # there is no share-manager to be with, or not yet
    {
        Reason.NO_CLAIMS,
        Reason.EPHEMERAL_CLAIM,
        Reason.CLAIM_NOT_BOUND,
        Reason.CLAIM_NOT_READ_WRITE_MANY,
        Reason.VOLUME_NOT_LONGHORN,
        Reason.VOLUME_IS_BLOCK,
        Reason.VOLUME_STRICT_LOCAL,
        Reason.SHARE_MANAGER_NOT_FOUND,
        Reason.SHARE_MANAGER_NO_NODE,
    }
)


class Outcome(Enum):
    """What became of an Event."""

    WRITTEN = "written"
    REPEATED = "repeated"  # the same was written a short while ago
    OVERFLOWED = "overflowed"  # the queue was full
    FAILED = "failed"  # no answer in time, or an error, each time
    REFUSED = "refused"  # by the API server, which would do so again
    STOPPED = "stopped"  # the program ended before


class Event(Struct, frozen=True, kw_only=True):
    """One Event to be: about the VirtualMachineInstance of this namespace, name and uid."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    warning: bool = False


def is_worth_telling(answer: Answer) -> bool:
    """Whether there may be anything to tell: cheap, for it is asked of every call."""
    decision = answer.decision
    if answer.request.dry_run:
        return False
    return not isinstance(decision, Leave) or decision.opted_in or decision.why.reason in _ASKED_IN_VAIN


def of(answer: Answer, entry: Entry) -> list[Event]:
    """What to tell of this answer."""
    if not is_worth_telling(answer):
        return []
    found = _of_share_manager(answer) if entry is Entry.SHARE_MANAGER else _of_virt_launcher(answer)
    return [notice for notice in found if notice.uid and is_node_name(notice.namespace) and is_node_name(notice.name)]


def _of_virt_launcher(answer: Answer) -> Iterator[Event]:
    request, decision = answer.request, answer.decision
    pod = answer.pod or request.object
    owner = kubevirt.owner(pod) if pod else None
    if pod is None or owner is None:
        return
    reason, message = NOT_CO_SCHEDULED, str(decision.why)
    if not isinstance(decision, Leave):
        reason = CO_SCHEDULED if decision.strength is Mode.REQUIRED else CO_SCHEDULED_PREFERRED
        message = tell(decision)
    elif not decision.opted_in and not _asked(pod.metadata.annotation(ANNOTATION_CO_SCHEDULE), decision):
        return
    yield Event(
        namespace=request.namespace or pod.metadata.namespace or "",
        name=owner.name or "",
        uid=owner.uid or "",
        reason=reason,
        message=_short(message),
        warning=isinstance(decision, Leave) and decision.why.reason not in _NOTHING_WRONG,
    )


def _asked(annotation: str | None, decision: Leave) -> bool:
    """Whether a VM that got nothing had asked for something."""
    return decision.why.reason is Reason.BAD_CO_SCHEDULE or vm_status.opts_in(annotation)


def _of_share_manager(answer: Answer) -> Iterator[Event]:
    decision = answer.decision
    stays = isinstance(decision, Leave)
    nodes = None if isinstance(decision, Leave) else decision.nodes
    told = str(decision.why) if isinstance(decision, Leave) else tell(decision)
    for finding in _by_vm(decision.findings):
        if nodes is None or finding.node in nodes:
            vm = finding.instance
            yield Event(
                namespace=vm.namespace if vm else "",
                name=str(finding.why.names.get("vm", "")),
                uid=vm.name if vm else "",
                reason=SHARE_MANAGER_NOT_STEERED if stays else SHARE_MANAGER_STEERED,
                message=_short(f"share-manager of volume {finding.volume_handle}: {told}"),
                warning=stays,
            )


def _by_vm(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each VM that is known to be on a node."""
    found = {each.instance: each for each in findings if each.instance and each.node}
    return list(found.values())[:_VMS_MAX]


def _short(message: str) -> str:
    """What the API server takes."""
    text = message.encode(errors="replace")
    if len(text) <= _MESSAGE_BYTES:
        return text.decode()
    return text[: _MESSAGE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT.decode()
