"""Slices of a long computation: other tasks run between two of them, so that an admission waits no longer than 3 ms."""

from __future__ import annotations

import asyncio
import time
from typing import Final

_SLICE_SECONDS: Final = 0.003
COUNT_EVERY: Final = 256  # how many steps, of less than 1 us each, run between two looks at the clock


class Slices:
    """Lets other tasks run when a slice of 3 ms is over."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _SLICE_SECONDS

    async def step(self) -> None:
        """Let other tasks run, if the slice is over."""
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + _SLICE_SECONDS
