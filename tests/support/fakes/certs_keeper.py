"""A keeper's life in memory: a cluster whose clock moves as the keeper waits, and that can end it at any write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.fakes import certs_cluster
from support.fakes.certs_cluster import POLICY, MemoryCluster

from certs.controller.objects import ApiError, Conflict
from certs.controller.reconciler import Controller
from certs.rotation.change import Change
from certs.rotation.state import State


class Killed(Exception):
    """The process ended."""


class Objects:
    """A cluster in memory with a clock of its own: waiting moves the clock, and a write can be the keeper's last."""

    def __init__(self, cluster: MemoryCluster, now: datetime) -> None:
        self.cluster, self.now = cluster, now
        self.kill: Callable[[int], str | None] = lambda _: None  # at which write, "before" or "after" it
        self.problem: list[str] = []
        self.unwatched: list[str] = []
        self.looks: list[timedelta] = []
        self.until: datetime | None = None
        self.raced: Callable[[], None] | None = None
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """A pause, that is noted and takes no time."""
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    async def read(self) -> State:
        """Both, or what is in the way."""
        if self.problem:
            raise ApiError(self.problem.pop(0))
        return self.cluster.state()

    async def write(self, change: Change) -> None:
        """A write, and perhaps the end."""
        kill = self.kill(len(self.cluster.writes))
        if kill == "before":
            raise Killed
        if self.raced:
            self.raced()
            self.raced = None
        try:
            self.cluster.apply(change)
        except certs_cluster.Conflict:
            raise Conflict from None
        if kill == "after":
            raise Killed

    async def changed(self, seen: State, at_most: timedelta) -> None:  # noqa: ARG002 - the protocol's
        """Nothing changes; time passes."""
        if self.unwatched:
            raise ApiError(self.unwatched.pop(0))
        self.looks.append(at_most)
        self.now += at_most
        if self.until and self.now >= self.until:
            raise Killed
        await asyncio.sleep(0)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Objects]:
        """One connection."""
        yield self


class Said:
    """What a keeper has said."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def __call__(self, message: str, level: int = logging.INFO, **fields: object) -> None:
        """One line."""
        self.lines.append({"message": message, "level": level, **fields})

    @property
    def messages(self) -> list[str]:
        """The constant parts."""
        return [line["message"] for line in self.lines]


async def keep(objects: Objects, said: Said | None = None) -> Controller:
    """A keeper's life, from its start until it is killed."""
    keeper = Controller(objects.connect, POLICY, clock=lambda: objects.now, note=said or Said(), sleep=objects.sleep)
    with pytest.raises(Killed):
        await keeper.run()
    return keeper
