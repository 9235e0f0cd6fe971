"""No call is lost to a certificate: a model of API servers and servers that lag, killed controllers, and edits.

An API server may see any bundle that was there in the last `propagation`. A server may serve any pair that was the
newest servable one of the Secret within the last `retire`. Every such pair must be verified by every such bundle.
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

from certs.rotation import plan
from certs.rotation.change import change_for
from certs.rotation.plan import WaitUntil
from certs.rotation.state import ClusterState
from certs.x509 import verify
from certs.x509.pki import NO_PAIR, Pair
from certs.x509.verify import Servable

WATCH_SECONDS: Final = 10 * SECOND  # an older plan is made again
TURNS_AT_MOST: Final = 12
KEEPERS: Final = 2

jumps = st.sampled_from([SECOND, 5 * SECOND, POLICY.propagation, POLICY.retire / 2, POLICY.retire, DAY, 9 * DAY])


class Rotations(RuleBasedStateMachine):
    """Two controllers on one cluster, and a user who edits their objects, at most once in each `retire`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.cluster = MemoryCluster(None, certs_cluster.configuration(b""))
        self.planned: dict[int, tuple[datetime, ClusterState, plan.RotationStep]] = {}
        self.excused_until = NOW
        self.edited_at = NOW - DAY
        self.served: list[tuple[datetime, Pair]] = []  # when it became the newest servable pair
        self.seen: list[tuple[datetime, tuple[bytes, ...]]] = [(NOW - DAY, (b"",))]
        self.snapshots: list[dict[str, Any]] = []

    @initialize()
    def first_start(self) -> None:
        """An empty cluster and a controller. Until API servers have seen the bundle, calls fail open."""
        self.settle()

    @rule(keeper=st.integers(0, KEEPERS - 1))
    def look(self, keeper: int) -> None:
        """One controller reads and plans; it may never write."""
        state = self.cluster.state()
        self.planned[keeper] = self.now, state, plan.next_step(state, POLICY, self.now)

    @rule(keeper=st.integers(0, KEEPERS - 1))
    def act(self, keeper: int) -> None:
        """It writes its plan, unless another client was faster, or it was killed."""
        at, state, step = self.planned.pop(keeper, (NOW, None, None))
        if step is None or state is None or isinstance(step, WaitUntil) or self.now - at > WATCH_SECONDS:
            return
        try:
            self.cluster.apply(change_for(step, state, POLICY, at))
        except Conflict:
            return
        self.note()

    @rule()
    def settle(self) -> None:
        """A controller reconciles until there is nothing to write."""
        for _ in range(TURNS_AT_MOST):
            state = self.cluster.state()
            step = plan.next_step(state, POLICY, self.now)
            if isinstance(step, WaitUntil):
                assert step.until > self.now
                return
            self.cluster.apply(change_for(step, state, POLICY, self.now))
            self.note()
        raise AssertionError(f"still writing after {TURNS_AT_MOST} turns: {step}")

    @rule(span=jumps)
    def time_passes(self, span: timedelta) -> None:
        """A controller runs all the time, and reads whenever its plan requires that."""
        end = self.now + span
        while self.now < end:
            self.settle()
            step = plan.next_step(self.cluster.state(), POLICY, self.now)
            assert isinstance(step, WaitUntil)
            self.now = min(step.until, end)

    @rule(span=jumps)
    def nobody_is_there(self, span: timedelta) -> None:
        """No controller runs for a time; nothing saves what expires meanwhile."""
        self.now += span

    @rule()
    def backup(self) -> None:
        """A user copies the Secret."""
        if self.cluster.secret:
            self.snapshots.append(copy.deepcopy(self.cluster.secret))

    def may_edit(self) -> bool:
        """Two edits together can remove what the repair of the first needs."""
        return self.now >= self.edited_at + POLICY.retire + POLICY.propagation

    @precondition(may_edit)
    @rule(bundle=st.sampled_from([b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]))
    def bundle_is_replaced(self, bundle: bytes) -> None:
        """A replace of the whole configuration removes bundle and marks."""
        self.cluster.edit_configuration(certs_cluster.configuration(bundle))
        self.heal()

    @precondition(may_edit)
    @rule(expired=st.booleans())
    def a_stranger_is_added(self, expired: bool) -> None:  # noqa: FBT001 - drawn
        """A user adds an authority to the bundle."""
        lifetime = SECOND if expired else 30 * DAY
        stranger = certs_cluster.pair(at=self.now - 2 * SECOND, lifetime=lifetime)
        new = copy.deepcopy(self.cluster.configuration)
        edited = certs_cluster.configuration(self.cluster.bundles[0] + stranger.authority)
        new["webhooks"] = edited["webhooks"]
        self.cluster.edit_configuration(new)
        self.heal()

    @precondition(may_edit)
    @rule()
    def secret_is_deleted(self) -> None:
        """Servers continue with the pair in their memory."""
        self.cluster.edit_secret(None)
        self.heal()

    @precondition(may_edit)
    @rule(key=st.sampled_from(["tls.crt", "tls.key", "ca.crt", "next.crt", "next.key"]))
    def secret_is_damaged(self, key: str) -> None:
        """One file of the Secret is damaged."""
        if self.cluster.secret and self.cluster.secret.get("data"):
            new = copy.deepcopy(self.cluster.secret)
            new["data"][key] = "Z2FyYmFnZQ=="
            self.cluster.edit_secret(new)
            self.heal()

    @precondition(may_edit)
    @rule(data=st.data())
    def backup_is_restored(self, data: st.DataObject) -> None:
        """An old Secret is restored: its certificate can be good, due or expired, with a staged pair or without."""
        if self.snapshots:
            self.cluster.edit_secret(data.draw(st.sampled_from(self.snapshots)))
            self.heal()

    def heal(self) -> None:
        """A watch informs the controller at once; API servers see its writes later."""
        self.edited_at = self.now
        self.excused_until = self.now + POLICY.propagation
        self.note()
        self.settle()

    def note(self) -> None:
        """Note what servers and API servers will see."""
        current = self.cluster.served
        if not any(map(self.good, since(self.served, self.now - POLICY.retire))):
            self.excused_until = self.now + POLICY.propagation  # as at the first start: there was no call to lose
        if self.good(current) and (not self.served or self.served[-1][1] != current):
            self.served.append((self.now, current))
        self.seen.append((self.now, tuple(self.cluster.bundles)))
        self.no_call_is_lost()

    def good(self, pair: Pair) -> bool:
        """Return whether a server can serve the pair now."""
        return isinstance(verify.examine(pair, NAMES, self.now), Servable)

    @invariant()
    def no_call_is_lost(self) -> None:
        """Every pair that a server may serve is verified by every bundle that an API server may see."""
        if self.now < self.excused_until:
            return
        for pair in since(self.served, self.now - POLICY.retire):
            if self.good(pair):
                for bundles in since(self.seen, self.now - POLICY.propagation):
                    assert all(pair.authority in bundle for bundle in bundles)

    def teardown(self) -> None:
        """In the end there is one good pair, its authority alone in the bundle, and nothing to do."""
        if not self.served:
            return
        for _ in range(TURNS_AT_MOST):
            self.settle()
            step = plan.next_step(self.cluster.state(), POLICY, self.now)
            assert isinstance(step, WaitUntil)
            if step.until > self.now + POLICY.retire:
                break
            self.now = step.until
        assert self.good(self.cluster.served)
        assert set(self.cluster.bundles) == {self.cluster.served.authority}
        assert self.cluster.state().secret.next == NO_PAIR


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
