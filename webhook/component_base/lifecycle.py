"""The life of a process that serves: its background tasks, by name, and the signals that end it.

No background task may end before `stop`. If a task returns, raises or is canceled, then the data that it updates
becomes old. So the process logs and counts that, and ends. The kubelet then starts a new one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from webhook.component_base.log_line import failure

LOGGER: Final = logging.getLogger(__name__)


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
        fields = {"task": task.get_name(), "because": because, **(failure(error) if error else {})}
        LOGGER.error("a background task ended, so the process ends", extra={"fields": fields})
        self.failed.set()


def set_on_signal(stopping: asyncio.Event) -> asyncio.Event:
    """Set the event at the first SIGTERM or SIGINT, and exit at once at the second.

    Return another event, which SIGINT (Ctrl-C) sets.
    """
    signalled, interrupted = False, asyncio.Event()

    def on_signal(number: int) -> None:
        nonlocal signalled
        if signalled:
            os._exit(1)
        signalled = True
        if number == signal.SIGINT:
            interrupted.set()
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    return interrupted


async def wait_for_first(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
