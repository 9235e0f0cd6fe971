"""One AdmissionRecord per call: what the log, the metrics and whoever else tells of calls is made from.

Names of objects only: never a field's content.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from webhook.core.admit import Answer, Entry
from webhook.core.api import kubevirt
from webhook.core.decision import Leave

LOGGER: Final = logging.getLogger("webhook")


class AdmissionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one call asked and was answered.

    `entry`: of the webhook configuration. `duration_us`: microseconds from the whole body to the answer. `reads`:
    objects that no cache had, and that the API server was asked for; `read_us` of the microseconds went there.
    """

    time: datetime
    level: str
    message: str
    entry: str
    uid: str
    decision: str
    reason: str
    because: str
    duration_us: int
    namespace: str | None = None
    pod: str | None = None
    vmi: str | None = None
    nodes: Sequence[str] = ()
    operations: int = 0
    reads: int = 0
    read_us: int = 0
    dry_run: bool = False


def of(
    answer: Answer, duration_us: int, reads: int = 0, entry: Entry = Entry.VIRT_LAUNCHER, *, read_us: int = 0
) -> AdmissionRecord:
    """The record of an answer, as of now."""
    request, pod, decision, audit = answer.request, answer.pod, answer.decision, answer.audit_annotations
    meta = pod.metadata if pod else None
    instance = kubevirt.owner(pod) if pod else None
    return AdmissionRecord(
        time=datetime.now(UTC),
        level="info",
        message="admission",
        entry=entry.title,
        uid=request.uid,
        decision=audit["decision"],
        reason=audit["reason"],
        because=audit["because"],
        duration_us=duration_us,
        namespace=request.namespace,
        pod=(meta.name or meta.generate_name) if meta else None,
        vmi=instance.name if instance else None,
        nodes=() if isinstance(decision, Leave) else decision.nodes,
        operations=len(answer.operations),
        reads=reads,
        read_us=read_us,
        dry_run=bool(request.dry_run),
    )
