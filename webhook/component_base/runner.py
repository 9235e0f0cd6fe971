"""TerminalRunner: the event loop of a command that a user can interrupt with Ctrl-C at any moment."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

_Result = TypeVar("_Result")


class TerminalRunner:
    """An asyncio.Runner that takes SIGINT between two callbacks of the loop.

    asyncio.Runner cancels its task inside the signal handler, so in the middle of any callback (CPython's
    Lib/asyncio/runners.py, _on_sigint). A callback that has just seen a future pending then fails with
    InvalidStateError, and asyncio prints the traceback.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def run(self, coro: Coroutine[Any, Any, _Result]) -> _Result:
        """Run the coroutine and return its result.

        Raises:
            KeyboardInterrupt: the user pressed Ctrl-C. The first one cancels the coroutine, the second ends at once.
        """
        if threading.current_thread() is not threading.main_thread():
            return self._runner.run(coro)
        interrupt = _Interrupt(self._runner.get_loop())
        before = signal.signal(signal.SIGINT, interrupt.on_signal)
        try:
            result = self._runner.run(interrupt.wait_for(coro))
        except asyncio.CancelledError:
            interrupt.check()
            raise
        finally:
            signal.signal(signal.SIGINT, before)
        interrupt.check()
        return result


class _Interrupt:
    """The first SIGINT of a run, which cancels the run's task as a callback of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._came = False

    def on_signal(self, *_: object) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def wait_for(self, coro: Coroutine[Any, Any, _Result]) -> _Result:
        self._task = asyncio.current_task()
        if self._came:
            self._cancel()
        return await coro

    def check(self) -> None:
        if self._came:
            raise KeyboardInterrupt
