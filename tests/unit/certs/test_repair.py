"""What goes wrong around a rotation: edits of the objects, starts of the controller, and clocks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from support.fakes import certs_cluster
from support.fakes.certs_cluster import (
    DAY,
    EXPIRED,
    FRESH,
    NAMES,
    NOW,
    OLD,
    OURS,
    POLICY,
    SECOND,
    STRANGER,
    WRONG_KEY,
    Watched,
    configuration,
    published,
    secret,
)

from certs import pki
from certs.pki import Authority, Pair
from certs.plan import Issue, Publish, RotationHistory

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize("running", [5 * MINUTE, 30 * MINUTE, 50 * MINUTE])
def test_an_authority_that_leaked_leaves_though_controllers_do_not_live_for_an_hour(running: timedelta) -> None:
    """An hour after the first certificate of the new authority, and at most a start's watch later."""
    watched = Watched(FRESH, published(FRESH), of=None)
    watched.until_waiting()
    issued_at = now = NOW + POLICY.propagation
    assert watched.until_waiting(now)[0] == [Issue]
    while len(watched.cluster.state().configuration.bundles[0]) > len(watched.cluster.served.authority):
        now += POLICY.propagation
        if (now - issued_at) % running < POLICY.propagation:
            watched.history = RotationHistory()
        watched.until_waiting(now)
    assert issued_at + POLICY.retire <= now <= issued_at + POLICY.retire + 2 * POLICY.propagation


@pytest.mark.parametrize("stranger", [STRANGER, EXPIRED], ids=["valid", "expired"])
def test_an_authority_that_somebody_adds_leaves_at_once(stranger: Pair) -> None:
    """The Secret has had pairs of one authority for an hour, so that no server serves one of another."""
    watched = Watched(FRESH, published(FRESH))
    watched.until_waiting()
    watched.cluster.edit_configuration(configuration(published(FRESH, stranger)))
    assert watched.until_waiting(NOW + POLICY.retire)[0] == [Publish]
    assert watched.cluster.bundles == [published(FRESH)]


def test_a_controller_that_starts_watches_a_pair_before_it_drops_what_may_be_served() -> None:
    """A user may have restored both Secrets just before, and servers may still have what was there then."""
    restored = certs_cluster.made(at=NOW - 5 * DAY)
    watched = Watched(certs_cluster.pair(at=NOW - 5 * DAY, of=restored), published(FRESH), of=restored)
    assert watched.until_waiting()[0] == [Publish]
    assert FRESH.authority in watched.cluster.bundles[0]
    assert watched.until_waiting(NOW + POLICY.propagation - SECOND)[0] == []
    assert watched.until_waiting(NOW + POLICY.propagation)[0] == [Publish]


ANOTHER = certs_cluster.made(at=NOW - DAY)


@pytest.mark.parametrize(
    ("served", "authority", "bundle", "now"),
    [
        (FRESH, OURS, b"", NOW),
        (FRESH, OURS, b"garbage", NOW),
        (FRESH, OURS, published(STRANGER), NOW),
        (None, OURS, published(FRESH), NOW),
        (FRESH, None, published(FRESH), NOW),
        (None, None, published(FRESH), NOW),
        (None, None, b"", NOW),
        (certs_cluster.pair(at=NOW - DAY, of=ANOTHER), OURS, published(FRESH), NOW),
        (FRESH, ANOTHER, published(FRESH), NOW),
        (certs_cluster.pair(at=NOW - DAY, of=ANOTHER), ANOTHER, published(FRESH), NOW),
        (WRONG_KEY, OURS, published(FRESH), NOW),
        (Pair(OLD.certificate, OLD.key, FRESH.authority), OURS, published(FRESH), NOW),
        (FRESH, OURS, published(FRESH), NOW - 5 * HOUR),
        (FRESH, OURS, published(FRESH), NOW + 5 * HOUR),
        (FRESH, OURS, published(FRESH), NOW - 800 * DAY),
        (FRESH, OURS, published(FRESH), NOW + 800 * DAY),
    ],
    ids=[
        "bundle emptied",
        "bundle overwritten",
        "bundle of another authority",
        "certificate deleted",
        "authority deleted",
        "both deleted",
        "all gone",
        "certificate restored",
        "authority restored",
        "both restored",
        "another key",
        "another ca.crt",
        "clock hours behind",
        "clock hours ahead",
        "clock years behind",
        "clock years ahead",
    ],
)
def test_what_somebody_did_is_repaired_and_then_nothing_is_left_to_do(
    served: Pair | None, authority: Authority | None, bundle: bytes, now: datetime
) -> None:
    """By a controller that ran before, or starts then. A write never takes away what verifies the served pair."""
    for runs in (True, False):
        watched = Watched(FRESH, published(FRESH))
        if runs:
            watched.until_waiting(NOW - SECOND)
        watched.cluster.edit_secret("served", secret(served) if served else None)
        watched.cluster.edit_secret("authority", secret(authority.pair) if authority else None)
        watched.cluster.edit_configuration(configuration(bundle))
        waited = now
        for _ in range(4):
            _, wait = watched.until_waiting(waited)
            assert watched.cluster.served.authority in watched.cluster.bundles[0]
            if wait.until > waited + POLICY.retire:
                break
            waited = wait.until
        assert isinstance(pki.examine(watched.cluster.served, NAMES, waited), pki.Servable)
        assert watched.cluster.bundles == [watched.cluster.served.authority]
        assert watched.cluster.state().authority.pair.certificate == watched.cluster.served.authority
        assert waited <= now + POLICY.propagation + POLICY.retire
