"""A controller's life in memory: waiting moves its cluster's clock, and the cluster can end it at any write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.fakes import certs_cluster
from support.fakes.certs_cluster import NOW, POLICY, MemoryCluster

from certs.cluster import Conflict
from certs.controller import Clock, Controller
from certs.plan import RotationPolicy, Write
from certs.state import ClusterState
from webhook.component_base.client.transport import ApiError


class Killed(Exception):
    """The process was killed."""


class Objects:
    """A cluster in memory with its own clock: waiting moves the clock, and a write can be the last."""

    def __init__(self, cluster: MemoryCluster, now: datetime) -> None:
        self.cluster, self.now = cluster, now
        self.kill: Callable[[int], str | None] = lambda _: None  # at which write, "before" or "after" it
        self.problem: list[str] = []
        self.until: datetime | None = None
        self.raced: Callable[[], None] | None = None
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Let time pass without a change."""
        self.pauses.append(seconds)
        self.now += timedelta(seconds=seconds)
        if self.until and self.now >= self.until:
            raise Killed
        await asyncio.sleep(0)

    async def read(self) -> ClusterState:
        """Return the objects, or raise the problem."""
        if self.problem:
            raise ApiError(self.problem.pop(0))
        return self.cluster.state()

    async def write(self, step: Write, seen: ClusterState, policy: RotationPolicy, now: datetime) -> None:  # noqa: ARG002 - the policy is POLICY
        """Apply a write, and perhaps end the process."""
        kill = self.kill(len(self.cluster.writes))
        if kill == "before":
            raise Killed
        if self.raced:
            self.raced()
            self.raced = None
        try:
            self.cluster.apply(step, seen, now)
        except certs_cluster.Conflict:
            raise Conflict("409 Conflict") from None
        if kill == "after":
            raise Killed

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Objects]:
        """Return one connection."""
        yield self


class Said:
    """The log lines of a controller."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def __call__(self, message: str, level: int = logging.INFO, **fields: object) -> None:
        """Add one line."""
        self.lines.append({"message": message, "level": level, **fields})

    @property
    def messages(self) -> list[str]:
        """Return the constant messages."""
        return [line["message"] for line in self.lines]


def controller(objects: Objects, said: Callable[..., None], policy: RotationPolicy = POLICY) -> Controller:
    """A controller that has just started, on the cluster's clock."""

    def elapsed() -> float:
        return (objects.now - NOW).total_seconds()

    clock = Clock(lambda: objects.now, elapsed, objects.sleep)
    return Controller(objects.connect, policy, clock, said)


async def keep(objects: Objects, said: Said | None = None, policy: RotationPolicy = POLICY) -> Controller:
    """Run a controller from its start until it is killed."""
    keeper = controller(objects, said or Said(), policy)
    with pytest.raises(Killed):
        await keeper.run()
    return keeper
