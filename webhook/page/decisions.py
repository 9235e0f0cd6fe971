"""Decisions: the last calls that this replica answered, for the page. Each call costs one append."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from webhook.telemetry.record import DEBUG, AdmissionRecord

KEPT: Final = 300


class Decisions:
    """The last KEPT records. `total` counts all records since the start of the process."""

    def __init__(self) -> None:
        self.total = 0
        self._records: deque[AdmissionRecord] = deque(maxlen=KEPT)

    def note(self, record: AdmissionRecord) -> None:
        """Add the record of a call; not if the pod's owner does not exist, because anybody can send such a call."""
        if record.level != DEBUG:
            self._records.append(record)
            self.total += 1

    def last(self) -> Sequence[AdmissionRecord]:
        """Return the stored records, the newest first."""
        return list(reversed(self._records))
