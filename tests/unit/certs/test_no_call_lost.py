"""No call is lost to a certificate: a model of API servers and servers that lag, killed controllers, and edits.

An API server may see any bundle that was there in the last `propagation`. A server may serve any pair that was the
newest servable one of the Secret within the last `retire`. Every such pair must be verified by every such bundle. Once
a user has set a controller's clock, servers are as quick as API servers: what is left of `retire` is for the clock.
"""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NAMES, NOW, POLICY, SECOND, Conflict, MemoryCluster
from support.sizes import size

from certs import pki, plan
from certs.pki import Pair, Servable
from certs.plan import RotationHistory, WaitUntil
from certs.state import ClusterState

WATCH_SECONDS: Final = 10 * SECOND  # an older plan is made again
TURNS_AT_MOST: Final = 12
CONTROLLERS: Final = 2

controllers = st.integers(0, CONTROLLERS - 1)
skews = st.sampled_from([-50, -1, 0, 1, 50]).map(lambda minutes: timedelta(minutes=minutes))
jumps = st.sampled_from([SECOND, 5 * SECOND, POLICY.propagation, POLICY.retire / 2, POLICY.retire, DAY, 9 * DAY])


class Rotations(RuleBasedStateMachine):
    """Two controllers on one cluster, and a user who edits their objects, at most once in each `retire`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.cluster = MemoryCluster(None, certs_cluster.configuration(b""))
        self.histories = [RotationHistory() for _ in range(CONTROLLERS)]
        self.skews = [timedelta()] * CONTROLLERS  # of the controllers' clocks
        self.lag = POLICY.retire  # of the slowest server
        self.planned: dict[int, tuple[datetime, ClusterState, plan.RotationStep]] = {}
        self.excused_until = NOW
        self.edited_at = NOW - DAY
        self.served: list[tuple[datetime, Pair]] = []  # when it became the newest servable pair
        self.seen: list[tuple[datetime, tuple[bytes, ...]]] = [(NOW - DAY, (b"",))]
        self.snapshots: list[tuple[str, dict[str, Any]]] = []

    @initialize()
    def first_start(self) -> None:
        """An empty cluster and a controller. Until API servers have seen the bundle, calls fail open."""
        self.settle(0)

    @rule(controller=controllers)
    def look(self, controller: int) -> None:
        """One controller reads and plans; it may never write."""
        state = self.cluster.state()
        self.planned[controller] = self.now, state, self.next_step(controller)

    @rule(controller=controllers)
    def act(self, controller: int) -> None:
        """It writes its plan, unless another client was faster, or it was killed."""
        at, state, step = self.planned.pop(controller, (NOW, None, None))
        if step is None or state is None or isinstance(step, WaitUntil) or self.now - at > WATCH_SECONDS:
            return
        try:
            self.cluster.apply(step, state, at + self.skews[controller])
        except Conflict:
            return
        self.note()

    @rule(controller=controllers)
    def is_killed(self, controller: int) -> None:
        """Between a look and its write, or at any other moment. The next one has seen nothing."""
        self.planned.pop(controller, None)
        self.histories[controller] = RotationHistory()

    @rule(controller=controllers)
    def settle(self, controller: int) -> None:
        """A controller reconciles until there is nothing to write."""
        for _ in range(TURNS_AT_MOST):
            step = self.next_step(controller)
            if isinstance(step, WaitUntil):
                assert step.until > self.now + self.skews[controller]
                return
            self.cluster.apply(step, self.cluster.state(), self.now + self.skews[controller])
            self.note()
        raise AssertionError(f"still writing after {TURNS_AT_MOST} turns: {step}")

    @rule(controller=controllers, span=jumps)
    def time_passes(self, controller: int, span: timedelta) -> None:
        """A controller runs all the time, and reads whenever its plan requires that."""
        end = self.now + span
        while self.now < end:
            self.settle(controller)
            step = self.next_step(controller)
            assert isinstance(step, WaitUntil)
            self.now = min(step.until - self.skews[controller], end)

    @rule(controller=controllers, skew=skews)
    def clock_is_set(self, controller: int, skew: timedelta) -> None:
        """By less than certificates are backdated. The controller looks, as it does every few seconds."""
        self.next_step(controller)
        self.planned.pop(controller, None)
        self.skews[controller], self.lag = skew, POLICY.propagation
        self.next_step(controller)

    @rule(span=jumps)
    def nobody_is_there(self, span: timedelta) -> None:
        """No controller runs for a time; nothing saves what expires meanwhile."""
        for controller in range(CONTROLLERS):
            self.is_killed(controller)
        self.now += span

    @rule()
    def backup(self) -> None:
        """A user copies the Secrets."""
        self.snapshots += [(which, copy.deepcopy(held)) for which, held in self.cluster.secrets.items() if held]

    def may_edit(self) -> bool:
        """Two edits together can remove what the repair of the first needs."""
        return self.now >= self.edited_at + POLICY.retire + POLICY.propagation

    @precondition(may_edit)
    @rule(bundle=st.sampled_from([b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]))
    def bundle_is_replaced(self, bundle: bytes) -> None:
        """A replace of the whole configuration removes the bundle.

        Servers that still serve a pair of an authority that was replaced lose its trust. The Secrets do not name it.
        """
        self.cluster.edit_configuration(certs_cluster.configuration(bundle))
        self.heal()
        self.served = [(at, pair) for at, pair in self.served if pair.authority in self.cluster.bundles[0]]

    @precondition(may_edit)
    @rule(expired=st.booleans())
    def a_stranger_is_added(self, expired: bool) -> None:  # noqa: FBT001 - drawn
        """A user adds an authority to the bundle."""
        lifetime = SECOND if expired else 30 * DAY
        stranger = certs_cluster.pair(at=self.now - 2 * SECOND, lifetime=lifetime)
        self.cluster.edit_configuration(certs_cluster.configuration(self.cluster.bundles[0] + stranger.authority))
        self.heal()

    @precondition(may_edit)
    @rule(which=st.sampled_from(["served", "authority"]))
    def secret_is_deleted(self, which: str) -> None:
        """Servers continue with the pair in their memory. Without the authority's Secret, a new authority is made."""
        self.cluster.edit_secret(which, None)
        self.heal()

    @precondition(may_edit)
    @rule(which=st.sampled_from(["served", "authority"]), key=st.sampled_from(["tls.crt", "tls.key", "ca.crt"]))
    def secret_is_damaged(self, which: str, key: str) -> None:
        """One file of a Secret is damaged."""
        if held := self.cluster.secrets[which]:
            new = copy.deepcopy(held)
            new["data"][key] = "Z2FyYmFnZQ=="
            self.cluster.edit_secret(which, new)
            self.heal()

    @precondition(may_edit)
    @rule(data=st.data())
    def backup_is_restored(self, data: st.DataObject) -> None:
        """An old Secret is restored: what is in it can be good, due, expired, or of another authority."""
        if self.snapshots:
            self.cluster.edit_secret(*data.draw(st.sampled_from(self.snapshots)))
            self.heal()

    def heal(self) -> None:
        """The controllers see the edit at once, and the first repairs it; API servers see its writes later.

        Both see it, because no server mounts a pair that is replaced within the 5 s between two reads. A controller
        that does not see the pair lets its authority leave as one that somebody added: at once.
        """
        self.edited_at = self.now
        self.excused_until = self.now + POLICY.propagation
        self.note()
        for controller in range(CONTROLLERS):
            self.next_step(controller)
        self.settle(0)

    def next_step(self, controller: int) -> plan.RotationStep:
        """What a controller would do now."""
        now, history = self.now + self.skews[controller], self.histories[controller]
        history.adjust(now, self.now - NOW)
        return plan.next_step(self.cluster.state(), history, POLICY, now)

    def note(self) -> None:
        """Note what servers and API servers will see."""
        current = self.cluster.served
        if not any(map(self.good, since(self.served, self.now - self.lag))):
            self.excused_until = self.now + POLICY.propagation  # as at the first start: there was no call to lose
        if self.good(current) and (not self.served or self.served[-1][1] != current):
            self.served.append((self.now, current))
        self.seen.append((self.now, tuple(self.cluster.bundles)))
        self.no_call_is_lost()

    def good(self, pair: Pair) -> bool:
        """Return whether a server can serve the pair now."""
        return isinstance(pki.examine(pair, NAMES, self.now), Servable)

    @invariant()
    def no_call_is_lost(self) -> None:
        """Every pair that a server may serve is verified by every bundle that an API server may see."""
        if self.now < self.excused_until:
            return
        for pair in since(self.served, self.now - self.lag):
            if self.good(pair):
                for bundles in since(self.seen, self.now - POLICY.propagation):
                    assert all(pair.authority in bundle for bundle in bundles)

    def teardown(self) -> None:
        """In the end there is one good pair, its authority alone in the bundle, and nothing to do."""
        if not self.served:
            return
        for _ in range(TURNS_AT_MOST):
            self.settle(0)
            step = self.next_step(0)
            assert isinstance(step, WaitUntil)
            until = step.until - self.skews[0]
            if until > self.now + POLICY.retire:
                break
            self.now = until
        assert self.good(self.cluster.served)
        assert set(self.cluster.bundles) == {self.cluster.served.authority}
        assert self.cluster.state().authority.pair.certificate == self.cluster.served.authority


def since(history: list[tuple[datetime, Any]], start: datetime) -> list[Any]:
    """Return every value that existed at some time after `start`."""
    older = [value for (_, value), (until, _) in pairwise(history) if until > start]
    return older + [value for _, value in history[-1:]]


TestRotations = Rotations.TestCase
TestRotations.settings = settings(
    max_examples=size("PROPERTY_EXAMPLES"),
    stateful_step_count=60,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
