"""A thread that does the same step again and again until the end of a `with` block."""

from __future__ import annotations

import threading
from typing import Self


class RepeatedStep:
    """A context manager. It calls `step` in a thread of its own, and waits `pause_seconds` before each call."""

    def __init__(self, pause_seconds: float) -> None:
        self._pause_seconds = pause_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def step(self) -> None:
        """Do the work once. The thread ends with the first exception."""
        raise NotImplementedError

    def _run(self) -> None:
        while not self._over.wait(self._pause_seconds):
            self.step()
