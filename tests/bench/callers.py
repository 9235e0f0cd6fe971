"""Callers that ask all the time, each from a thread of its own, and keep how long each answer took."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Self

from support.drivers.http_calls import Reply
from support.drivers.serving import Client


class Caller:
    """One connection that asks, waits for a while, and asks again. Use it as a context manager."""

    def __init__(self, client: Client, request: Callable[[], bytes], pause_seconds: float) -> None:
        self.replies: list[Reply] = []
        self._client, self._request, self._pause_seconds = client, request, pause_seconds
        self._took: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._pause_seconds):
            asked = perf_counter()
            self.replies.append(self._client.ask(self._request()))
            self._took.append((asked, perf_counter() - asked))

    def milliseconds(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        """How long each answer took that was asked for in this time."""
        return [took * 1e3 for asked, took in self._took if since <= asked < until]
