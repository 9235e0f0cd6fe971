"""Background: the tasks that run as long as the process serves, by name.

No such task may end before `stop`. If a task returns, raises or is canceled, then the data that it updates becomes old.
So the webhook logs and counts that, and ends the process. The kubelet then starts a new one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

from webhook.telemetry.record import LOGGER


class Background:
    """Tasks by name.

    Attributes:
        failures: how many tasks of each name ended before `stop`.
        failed: set when the first task ends before `stop`.
    """

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        self.failed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def exit_code(self) -> int:
        """The exit code of the process: 0 if no task has failed, otherwise 1."""
        return 1 if self.failures.total() else 0

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run this coroutine in a task from now on."""
        self.failures[name] += 0  # so that the metric exists before the first failure
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
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
        self.failed.set()
