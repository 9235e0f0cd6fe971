"""What the webhook writes makes no pod unschedulable that is schedulable as written, by the model of the scheduler.

The model shares no code with the webhook. It evaluates the pod as it is after the patch, rules between pods included.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support.strategies.zoned_clusters import drawn, stranding

from webhook.core.reasons import Reason


def first(names: Iterable[str]) -> str | None:
    """Return the first node, None if there is none."""
    return next(iter(names), None)


def test_a_list_would_forbid_every_node_to_a_vm_that_must_be_spread() -> None:
    """As written each of 130 nodes passes. A list has nodes of two zones, and minDomains asks for three."""
    cluster = stranding()
    decision, after = cluster.answered()
    assert len(list(cluster.feasible(cluster.pod))) == 130
    assert (decision.why.reason, decision.required, decision.shortlist) == (Reason.RULE_NOT_EVALUATED, (), ())
    assert len(list(cluster.feasible(after))) == 130


@given(random=st.randoms(use_true_random=False))
def test_a_patched_pod_is_schedulable_where_the_pod_as_written_is(random: Random) -> None:
    """Pinned, on a short list, or with a preference alone; whatever rules between pods there are."""
    cluster = drawn(random)
    decision, after = cluster.answered()
    if decision.required:
        assert set(cluster.feasible(after)) == set(decision.required), "each required node passes every filter"
    if first(cluster.feasible(cluster.pod)) is not None:
        assert first(cluster.feasible(after)) is not None


def test_the_clusters_tell_something() -> None:
    """Pins and short lists occur, each with and without rules; a plain preference only with rules."""
    found = set()
    for seed in range(60):
        cluster = drawn(Random(seed))  # noqa: S311 - chance for a test, not for a secret
        decision, _ = cluster.answered()
        found.add((bool(decision.required), bool(decision.shortlist), bool(cluster.rules)))
    pinned, listed = ({(*kind, rules) for rules in (True, False)} for kind in ((True, False), (False, True)))
    assert found - {(False, False, False)} == pinned | listed | {(False, False, True)}
