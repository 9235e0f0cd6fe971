"""Every state of the cluster has one next step, with a reason."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from support.fakes import certs_cluster
from support.fakes.certs_cluster import DAY, NAMES, NOW, POLICY, SECOND, MemoryCluster, authority, configuration, secret

from certs.rotation import change, plan
from certs.rotation.plan import Create, Issue, Promote, Publish, RotationStep, Stage, Unstage, WaitUntil
from certs.x509.pki import Pair

RENEWAL = NOW + POLICY.lifetime - POLICY.renew_before
FRESH, SPARE, STRANGER = (certs_cluster.pair() for _ in range(3))
NEXT = certs_cluster.pair(at=RENEWAL)
EXPIRED = certs_cluster.pair(at=NOW - 40 * DAY)
OLD = certs_cluster.pair(at=NOW - 21 * DAY)  # due since a day
BRIEF = certs_cluster.pair(lifetime=POLICY.propagation + POLICY.retire)
WRONG_KEY = Pair(FRESH.certificate, STRANGER.key, FRESH.authority)
DUE = "tls.crt is due for renewal: it expires at 2026-11-30T12:00:00Z"


def step(secret: dict[str, Any] | None, configuration: dict[str, Any], now: datetime = NOW) -> RotationStep:
    """Return the step for these objects."""
    return plan.next_step(MemoryCluster(secret, configuration).state(), POLICY, now)


def marks(*, needed: tuple[Pair, ...] = (), leaving: tuple[Pair, ...] = (), since: datetime = NOW) -> str:
    """Return the annotation with the times of the authorities."""
    rows = [f'"{authority(pair)}":{{"role":"needed","since":"{since.isoformat()}"}}' for pair in needed]
    rows += [f'"{authority(pair)}":{{"role":"leaving","since":"{since.isoformat()}"}}' for pair in leaving]
    return "{" + ",".join(rows) + "}"


def carried(*needed: Pair, leaving: tuple[Pair, ...] = (), since: datetime = NOW) -> dict[str, Any]:
    """Return a configuration of two webhooks with these bundles, as the controller writes it."""
    bundle = b"".join(pair.authority for pair in (*needed, *leaving))
    return configuration(bundle, bundle, marks=marks(needed=needed, leaving=leaving, since=since))


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((None, configuration(b"")), Create("the Secret does not exist"), id="nothing"),
        pytest.param((None, carried(FRESH)), Create("the Secret does not exist"), id="Secret deleted"),
        pytest.param((secret(), configuration(b"")), Issue("there is no certificate"), id="first start"),
        pytest.param(
            (secret(EXPIRED), configuration(b"")), Issue("tls.crt expired at 2026-11-11T12:00:00Z"), id="late"
        ),
        pytest.param((secret(WRONG_KEY), configuration(b"")), Issue("tls.key is not the key of tls.crt"), id="torn"),
        pytest.param(
            (secret(FRESH), carried(FRESH)),
            WaitUntil(RENEWAL, "the certificate is renewed at that time"),
            id="good",
        ),
        pytest.param(
            (secret(FRESH, SPARE), carried(FRESH)),
            Unstage("the current certificate can be served: no next one is needed"),
            id="staged for nothing",
        ),
        pytest.param(
            (secret(FRESH), carried(FRESH, leaving=(OLD,), since=NOW - 60 * SECOND)),
            WaitUntil(NOW - 60 * SECOND + POLICY.retire, "an authority leaves the bundle at that time"),
            id="leaving",
        ),
    ],
)
def test_a_state_has_a_step_and_a_reason(objects: Any, expected: RotationStep) -> None:
    """The steps, with all their words."""
    assert step(*objects) == expected


@pytest.mark.parametrize(
    ("objects", "added", "dropped", "leaving", "tidied"),
    [
        pytest.param((secret(FRESH), configuration(b"")), [FRESH], [], [], False, id="bundle empty"),
        pytest.param((secret(FRESH), configuration(b"garbage")), [FRESH], [], [], True, id="bundle garbage"),
        pytest.param(
            (secret(FRESH), configuration(FRESH.authority, b"")), [FRESH], [], [], False, id="one of two webhooks empty"
        ),
        pytest.param((secret(FRESH), configuration(2 * FRESH.authority)), [], [], [], True, id="there twice"),
        pytest.param(
            (secret(OLD), configuration(FRESH.authority)), [OLD], [], [FRESH], False, id="restored from an old backup"
        ),
        pytest.param(
            (secret(FRESH), configuration(FRESH.authority + STRANGER.authority)),
            [],
            [],
            [STRANGER],
            False,
            id="stranger",
        ),
        pytest.param(
            (secret(FRESH), configuration(FRESH.authority + EXPIRED.authority)), [], [EXPIRED], [], False, id="expired"
        ),
        pytest.param((secret(OLD, SPARE), configuration(OLD.authority)), [SPARE], [], [], False, id="staged"),
        pytest.param(
            (secret(SPARE, previous=OLD.authority, placed_at=NOW - 60 * SECOND), configuration(b"")),
            [SPARE, OLD],
            [],
            [OLD],
            False,
            id="emptied while servers may serve the previous one",
        ),
        pytest.param(
            (secret(SPARE, previous=OLD.authority, placed_at=NOW - POLICY.retire), configuration(b"")),
            [SPARE],
            [],
            [],
            False,
            id="emptied when no server can serve it any more",
        ),
        pytest.param(
            (secret(FRESH), carried(FRESH, leaving=(OLD,), since=NOW - POLICY.retire)),
            [],
            [OLD],
            [],
            False,
            id="retired",
        ),
    ],
)
def test_a_bundle_is_repaired_at_once(
    objects: Any,
    added: list[Pair],
    dropped: list[Pair],
    leaving: list[Pair],
    tidied: bool,  # noqa: FBT001 - a column
) -> None:
    """One write corrects all problems."""
    wanted = step(*objects)
    assert isinstance(wanted, Publish)
    assert [change.authority for change in wanted.bundle.added] == [authority(pair) for pair in added]
    assert [change.authority for change in wanted.bundle.dropped] == [authority(pair) for pair in dropped]
    assert [change.authority for change in wanted.bundle.leaving] == [authority(pair) for pair in leaving]
    assert wanted.bundle.tidied == tidied


@pytest.mark.parametrize(
    ("current", "because"),
    [
        pytest.param(OLD, DUE, id="due"),
        pytest.param(None, "there is no certificate", id="Secret deleted or emptied"),
        pytest.param(WRONG_KEY, "tls.key is not the key of tls.crt", id="key damaged"),
        pytest.param(
            certs_cluster.pair(names=NAMES[:1]), f"tls.crt is not for {', '.join(NAMES[1:])}", id="Service renamed"
        ),
    ],
)
def test_where_somebody_may_be_serving_the_next_pair_is_staged_first(current: Pair | None, because: str) -> None:
    """The published authorities stay until the next certificate is the current one."""
    published = tuple(pair for pair in (current, STRANGER) if pair and pair is not WRONG_KEY)
    shown = MemoryCluster(secret(current), configuration(b"".join(pair.authority for pair in published)))
    while isinstance(wanted := plan.next_step(shown.state(), POLICY, NOW), Publish):
        shown.apply(change.change_for(wanted, shown.state(), POLICY, NOW))
    assert isinstance(wanted, Stage)
    assert wanted.reason == because
    assert [certs_cluster.pki.short_fingerprint(each) for each in wanted.previous] == [
        authority(pair) for pair in published
    ]


@pytest.mark.parametrize(
    ("now", "renewed"), [(RENEWAL - SECOND, False), (RENEWAL, True)], ids=["almost due", "just due"]
)
def test_a_certificate_is_renewed_at_two_thirds_of_its_life(now: datetime, renewed: bool) -> None:  # noqa: FBT001 - a column
    """Exactly to the second."""
    assert isinstance(step(secret(FRESH), carried(FRESH), now), Stage if renewed else WaitUntil)


@pytest.mark.parametrize(
    ("waited", "promoted"),
    [(POLICY.propagation - SECOND, False), (POLICY.propagation, True)],
    ids=["almost", "just"],
)
def test_the_next_pair_is_served_when_every_api_server_has_seen_its_authority(
    waited: timedelta,
    promoted: bool,  # noqa: FBT001 - a column
) -> None:
    """Not a second earlier."""
    wanted = step(secret(FRESH, NEXT), carried(FRESH, NEXT, since=RENEWAL), RENEWAL + waited)
    if promoted:
        assert isinstance(wanted, Promote)
        assert [certs_cluster.pki.short_fingerprint(each) for each in wanted.previous] == [authority(FRESH)]
    else:
        assert isinstance(wanted, WaitUntil)
        assert wanted.until == RENEWAL + POLICY.propagation


@pytest.mark.parametrize(
    ("waited", "dropped"), [(POLICY.retire - SECOND, False), (POLICY.retire, True)], ids=["almost", "just"]
)
def test_an_authority_leaves_when_no_server_can_serve_its_certificate(
    waited: timedelta,
    dropped: bool,  # noqa: FBT001 - a column
) -> None:
    """Not a second earlier."""
    wanted = step(secret(FRESH), carried(FRESH, leaving=(OLD,)), NOW + waited)
    assert isinstance(wanted, Publish if dropped else WaitUntil)


def test_a_mark_with_a_future_time_is_ignored() -> None:
    """A clock that was wrong would otherwise delay a rotation, or keep an authority, for that time."""
    later = RENEWAL + 5 * DAY
    wanted = step(secret(FRESH, NEXT), carried(FRESH, NEXT, since=later), RENEWAL)
    assert isinstance(wanted, Publish)
    assert {mark.since for mark in wanted.bundle.marks.values()} == {RENEWAL}


@pytest.mark.parametrize("staged", [EXPIRED, WRONG_KEY, BRIEF], ids=["expired", "torn", "about to expire"])
def test_a_staged_pair_that_cannot_be_served_is_replaced(staged: Pair) -> None:
    """For example from an old backup."""
    assert isinstance(step(secret(OLD, staged), carried(OLD)), Stage)


def test_a_staged_pair_that_is_due_itself_is_good_enough() -> None:
    """It is renewed next. With short lifetimes, a new pair at once would be due again before it is served."""
    staged = certs_cluster.pair(lifetime=POLICY.propagation + POLICY.retire + SECOND)
    assert isinstance(step(secret(OLD, staged), carried(OLD, staged, since=NOW - DAY)), Promote)


def test_a_staged_pair_is_served_at_once_where_nobody_can_be_serving() -> None:
    """Only its authority is in the bundle."""
    assert isinstance(step(secret(EXPIRED, FRESH), carried(FRESH)), Promote)


def test_a_wait_starts_again_where_the_next_authority_was_taken_out() -> None:
    """An API server may not have seen an authority that one webhook lacks, however old its mark is."""
    objects = carried(FRESH, NEXT, since=RENEWAL - DAY)
    objects["webhooks"][1] = carried(FRESH)["webhooks"][1]
    wanted = step(secret(FRESH, NEXT), objects, RENEWAL)
    assert isinstance(wanted, Publish)
    assert wanted.bundle.marks[authority(NEXT)].since == RENEWAL


def test_what_servers_have_in_memory_is_published_again_from_the_secret() -> None:
    """The pair is gone, then the bundle. The authorities that were published at the staging are still known."""
    wanted = step(secret(None, SPARE, previous=OLD.authority, placed_at=NOW - 9 * DAY), configuration(b""))
    assert isinstance(wanted, Publish)
    assert [each.authority for each in wanted.bundle.added] == [authority(SPARE), authority(OLD)]
    assert wanted.bundle.leaving == ()


def test_what_is_published_again_leaves_when_it_would_have() -> None:
    """By the time in the Secret at which the pair was written."""
    placed = NOW - 60 * SECOND
    wanted = step(secret(FRESH, previous=OLD.authority, placed_at=placed), configuration(b""))
    assert isinstance(wanted, Publish)
    assert [each.until for each in wanted.bundle.leaving] == [placed + POLICY.retire]


def test_what_was_published_before_an_unknown_time_is_not_published_again() -> None:
    """After the loss of an annotation, or a wrong clock, it would otherwise come back each time."""
    for placed in (None, NOW + DAY):
        wanted = step(secret(FRESH, previous=OLD.authority, placed_at=placed), configuration(b""))
        assert isinstance(wanted, Publish)
        assert [each.authority for each in wanted.bundle.added] == [authority(FRESH)]


def test_strangers_are_bounded() -> None:
    """The bundle has a limited size; the newest authorities stay."""
    strangers = [certs_cluster.pair(at=NOW - index * SECOND) for index in range(40)]
    wanted = step(secret(FRESH), configuration(FRESH.authority + b"".join(pair.authority for pair in strangers)))
    assert isinstance(wanted, Publish)
    assert [each.authority for each in wanted.bundle.dropped] == [authority(pair) for pair in strangers[32:]]


def test_a_rotation_is_five_writes_and_two_waits() -> None:
    """In the order of the plan's docstring."""
    shown, now, story = MemoryCluster(secret(FRESH), carried(FRESH)), RENEWAL, []
    while now < RENEWAL + POLICY.propagation + POLICY.retire + SECOND:
        wanted = plan.next_step(shown.state(), POLICY, now)
        story.append(type(wanted))
        if isinstance(wanted, WaitUntil):
            now = wanted.until
        else:
            shown.apply(change.change_for(wanted, shown.state(), POLICY, now))
    assert story == [Stage, Publish, WaitUntil, Promote, Publish, WaitUntil, Publish, WaitUntil]
    assert shown.bundles == [shown.served.authority] * 2


def test_fields_that_are_not_ours_stay() -> None:
    """A write of the bundle sends every webhook as it was read."""
    shown = MemoryCluster(secret(FRESH), configuration(b"", b""))
    before = [dict(hook) for hook in shown.configuration["webhooks"]]
    shown.apply(change.change_for(plan.next_step(shown.state(), POLICY, NOW), shown.state(), POLICY, NOW))
    for hook, old in zip(shown.configuration["webhooks"], before, strict=True):
        assert hook["clientConfig"].pop("caBundle")
        old["clientConfig"].pop("caBundle", None)
        assert hook == old
