"""One AdmissionRecord per call, and the log line made from it.

A log line is JSON: time, level, a constant message, then fields. Names of objects only: never a field's content.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from webhook.core.admit import Answer
from webhook.core.placement import Leave

LOGGER: Final = logging.getLogger("webhook")
_encoder: Final = msgspec.json.Encoder()


class AdmissionRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one call asked and was answered.

    `duration_us`: microseconds from the whole body to the answer. `reads`: objects that no cache had, and that the
    API server was asked for.
    """

    time: datetime
    level: str
    message: str
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
    dry_run: bool = False


def of(answer: Answer, duration_us: int, reads: int = 0) -> AdmissionRecord:
    """The record of an answer, as of now."""
    request, pod, decision, audit = answer.request, answer.pod, answer.decision, answer.audit_annotations
    meta = pod.metadata if pod else None
    owners = (meta.owner_references or ()) if meta else ()
    return AdmissionRecord(
        time=datetime.now(UTC),
        level="info",
        message="admission",
        uid=request.uid,
        decision=audit["decision"],
        reason=audit["reason"],
        because=audit["because"],
        duration_us=duration_us,
        namespace=request.namespace,
        pod=(meta.name or meta.generate_name) if meta else None,
        vmi=next((owner.name for owner in owners if owner.kind == "VirtualMachineInstance"), None),
        nodes=() if isinstance(decision, Leave) else decision.nodes,
        operations=len(answer.operations),
        reads=reads,
        dry_run=bool(request.dry_run),
    )


def log(record: AdmissionRecord) -> None:
    """Write the one line of this call to standard error, past `logging`: that costs three times as much."""
    sys.stderr.write(_encoder.encode(record).decode() + "\n")


class JSONFormatter(logging.Formatter):
    """A log record as one line of JSON; `extra={"fields": ...}` (a Struct or a mapping) is merged in."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1]:
            line["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            line["at"] = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(record.exc_info[2])]
        text = _encoder.encode(line).decode()
        fields = getattr(record, "fields", None)
        return f"{text[:-1]},{_encoder.encode(fields).decode()[1:]}" if fields else text


def start_logging() -> None:
    """Send what this process logs to standard error, as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
