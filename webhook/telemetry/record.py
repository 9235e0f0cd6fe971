"""AdmissionRecord: what the log, the metrics and the page show of one call. And the log: lines on standard error.

A record and a line have names of objects only, never the content of a field. The line of an admission does not use
`logging`, which takes three times as long. Libraries log at level warning and above.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from webhook.component_base import log_line
from webhook.core.admit import Answer, Entry
from webhook.core.api import kubevirt
from webhook.core.decision import Leave

INFO: Final = "info"
DEBUG: Final = "debug"
LOGGER: Final = logging.getLogger("webhook")
LogLevel = Literal["debug", "info", "warning", "error"]


class AdmissionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call and its answer. Field names and order are those of the log line.

    Attributes:
        entry: the entry of the webhook configuration that the API server called.
        duration_us: microseconds from the complete body to the answer.
        reads: how many objects were read from the API server, because no cache had them.
        read_us: how many microseconds of `duration_us` these reads took.
        level: debug for a call that anybody can send, and that the page does not show. The entry is not for its object,
            or the cluster is not known to have the object that owns the pod.
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


def admission_record(
    answer: Answer, duration_us: int, reads: int = 0, entry: Entry = Entry.VIRT_LAUNCHER, *, read_us: int = 0
) -> AdmissionRecord:
    """Return the record of an answer, with the current time."""
    request, pod, decision, audit = answer.request, answer.pod, answer.decision, answer.audit_annotations
    meta = pod.metadata if pod else None
    vmi = kubevirt.owner(pod) if pod else None
    return AdmissionRecord(
        time=datetime.now(UTC),
        level=INFO if answer.of_owner else DEBUG,
        message="admission",
        entry=entry.title,
        uid=request.uid,
        decision=audit["decision"],
        reason=audit["reason"],
        because=audit["because"],
        duration_us=duration_us,
        namespace=request.namespace,
        pod=(meta.name or meta.generate_name) if meta else None,
        vmi=vmi.name if vmi else None,
        nodes=() if isinstance(decision, Leave) else decision.nodes,
        operations=len(answer.operations),
        reads=reads,
        read_us=read_us,
        dry_run=bool(request.dry_run),
    )


@contextmanager
def written_log(level: LogLevel) -> Iterator[None]:
    """Write all log records of this process in this block, those of libraries too."""
    number, before = logging.getLevelNamesMapping()[level.upper()], LOGGER.level
    # At lower levels libraries log bodies and headers (kubernetes-asyncio: rest.py).
    with log_line.written_to_stderr(max(number, logging.WARNING)):
        LOGGER.setLevel(number)
        try:
            yield
        finally:
            LOGGER.setLevel(before)


def write(record: AdmissionRecord) -> None:
    """Write the line of an admission, or lose it: a full disk or a closed pipe must not cost the answer."""
    if LOGGER.isEnabledFor(logging.DEBUG if record.level == DEBUG else logging.INFO):
        stream = sys.stderr.buffer  # the text layer above would encode the line again
        with suppress(OSError):
            stream.write(log_line.ENCODER.encode(record) + b"\n")
            stream.flush()
