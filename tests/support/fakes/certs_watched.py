"""A certificate controller's plan for a cluster in memory, at the times that a test chooses."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NOW, POLICY, MemoryCluster, configuration, secret

from certs import plan
from certs.pki import Authority, Pair
from certs.plan import RotationHistory, RotationStep, WaitUntil

OURS: Final = certs_cluster.made()
FRESH: Final = certs_cluster.pair(of=OURS)
OLD: Final = certs_cluster.pair(at=NOW - 21 * DAY)  # of another authority, and due since a day
STRANGER: Final = certs_cluster.pair()
EXPIRED: Final = certs_cluster.pair(at=NOW - 40 * DAY)
WRONG_KEY: Final = Pair(FRESH.certificate, STRANGER.key, FRESH.authority)


class Watched:
    """A cluster, and a controller that has watched it from its start."""

    def __init__(self, served: Pair | None, *bundles: bytes, of: Authority | None = OURS) -> None:
        held = secret(of.pair) if of else None
        self.cluster = MemoryCluster(secret(served) if served else None, configuration(*bundles), held)
        self.history = RotationHistory()

    def step(self, now: datetime = NOW) -> RotationStep:
        """What it would do now."""
        return plan.next_step(self.cluster.state(), self.history, POLICY, now)

    def until_waiting(self, now: datetime = NOW) -> tuple[list[type], WaitUntil]:
        """What it does now until it waits, and that wait."""
        taken: list[type] = []
        while not isinstance(wanted := self.step(now), WaitUntil):
            assert len(taken) < 9, taken
            taken.append(type(wanted))
            self.cluster.apply(wanted, self.cluster.state(), now)
        return taken, wanted


def published(*pairs: Pair) -> bytes:
    """A bundle of the authorities of these pairs."""
    return b"".join(pair.authority for pair in pairs)
