"""Background: the tasks that this process runs for as long as it serves, under their names.

None of them ends by itself, so whichever does has failed: it returned, raised, or was cancelled by somebody else. Then
what it kept goes stale. So that is logged and counted, and the process is told to end: a new one begins well.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from webhook.telemetry.record import LOGGER


class Background:
    """Tasks by name. `failures`: how many of each name ended before `stop`. `over` is set by the first that does."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self.over = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def exit_code(self) -> int:
        """Of the process: 0 where no task has failed."""
        return 1 if self.failures.total() else 0

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run this from now on."""
        self.failures[name] += 0  # a metric tells of it before it happens
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Cancel them all, and wait until they have ended."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if self._stopping:
            return
        self.failures[task.get_name()] += 1
        because = "it was cancelled" if task.cancelled() else "it failed" if error else "it returned"
        fields = {"task": task.get_name(), "because": because}
        LOGGER.error("a background task ended, so the process ends", exc_info=error, extra={"fields": fields})
        self.over.set()
