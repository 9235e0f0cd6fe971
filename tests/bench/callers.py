"""Callers that ask all the time, each from a thread of its own, and keep how long each answer took."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from support.drivers.http_calls import Reply
from support.drivers.serving import Client
from support.repeated_step import RepeatedStep


class Caller(RepeatedStep):
    """One connection that asks, waits for a while, and asks again. Use it as a context manager."""

    def __init__(self, client: Client, request: Callable[[], bytes], pause_seconds: float) -> None:
        super().__init__(pause_seconds)
        self.replies: list[Reply] = []
        self._client, self._request = client, request
        self._took: list[tuple[float, float]] = []

    def step(self) -> None:
        """Ask once, and keep the reply and how long it took."""
        asked = perf_counter()
        self.replies.append(self._client.ask(self._request()))
        self._took.append((asked, perf_counter() - asked))

    def milliseconds(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        """How long each answer took that was asked for in this time."""
        return [took * 1e3 for asked, took in self._took if since <= asked < until]
