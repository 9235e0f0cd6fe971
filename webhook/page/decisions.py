"""Decisions: the last calls that this replica answered, for the page. Each call costs one append."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from webhook.telemetry.record import AdmissionRecord

KEPT: Final = 300


class Decisions:
    """The last KEPT records, numbered from 1. `total` counts all records since the start of the process."""

    def __init__(self) -> None:
        self.total = 0
        self._records: deque[AdmissionRecord] = deque(maxlen=KEPT)
        self._added = asyncio.Event()

    def note(self, record: AdmissionRecord) -> None:
        """Add the record of a call; not if its VM does not exist, because anybody can send such a call."""
        if record.vmi_missing:
            return
        self._records.append(record)
        self.total += 1
        if not self._added.is_set():
            self._added.set()

    def after(self, number: int) -> Sequence[AdmissionRecord]:
        """Return the stored records after this number, oldest first; all of them if no record ever had this number."""
        new = self.total - number if 0 <= number <= self.total else KEPT
        return list(islice(self._records, max(0, len(self._records) - new), None))

    async def until_after(self, number: int) -> None:
        """Wait until there is a record after this number."""
        while self.total <= number:
            self._added.clear()
            await self._added.wait()
