"""The log of `serve` and of `reunite` in a pod: one line of JSON for each record, on standard error.

The line of an admission does not use `logging`, which takes three times as long. A line has names of objects only,
never the content of a field. Libraries log at level warning and above.
"""

from __future__ import annotations

import logging
import sys
from typing import Literal

from webhook.component_base import log_line
from webhook.telemetry.record import DEBUG, LOGGER, AdmissionRecord

LogLevel = Literal["debug", "info", "warning", "error"]


def start_log(level: LogLevel) -> None:
    """Write all log records of this process from now on, those of libraries too."""
    number = logging.getLevelNamesMapping()[level.upper()]
    # At lower levels libraries log bodies and headers (kubernetes-asyncio: rest.py).
    log_line.write_to_stderr(max(number, logging.WARNING))
    LOGGER.setLevel(number)


def write(record: AdmissionRecord) -> None:
    """Write the line of an admission."""
    if LOGGER.isEnabledFor(logging.DEBUG if record.level == DEBUG else logging.INFO):
        stream = sys.stderr.buffer  # the text layer above would encode the line again
        stream.write(log_line.ENCODER.encode(record) + b"\n")
        stream.flush()
