"""A hard pin is never wrong, even if caches are out of date and reads fail."""

from __future__ import annotations

import asyncio

from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.faulty_cluster import CACHED, CACHES, HALF, answer
from support.fakes.live import PATHS, path_of
from support.fakes.views import cluster
from support.models.cluster_model import ClusterModel
from support.objects.builders import share_manager
from support.strategies.strategies import Scenario, review_of, scenarios

from webhook.core.admit import Answer, admit
from webhook.core.decision import Pin
from webhook.core.view import Kind

UNREAD_MANAGERS = [share_manager(f"h{index}") for index in range(4)]
"""A live pod is where the disk is, though its ShareManager could not be read, and might be gone."""


OF_USERS = (Kind.PERSISTENT_VOLUME, Kind.VIRT_LAUNCHER_POD, Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE)


def required(found: Answer) -> set[str]:
    """The nodes that the pod is bound to."""
    return set(found.decision.required) if isinstance(found.decision, Pin) else set()


@given(scenarios(), scenarios(), CACHES, st.sets(st.integers(1, 20)) | st.just(set(range(1, 99))))
def test_a_hard_pin_is_never_wrong(
    scenario: Scenario, before: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With stale caches and failed reads, a pod is pinned only to a node that serves its disk in the real cluster."""
    found, _ = asyncio.run(answer(scenario, before.objects, caches, failing))
    bound = required(found)
    note("bound" if bound else "not bound")
    model = ClusterModel([*UNREAD_MANAGERS, *scenario.objects])
    assert bound <= model.firm_nodes(scenario.pod, "vms")
    assert all(model.can_start(scenario.pod, "vms", node) for node in bound)


@HALF
@given(scenarios(), scenarios(), CACHES)
def test_where_reads_succeed_the_answer_is_that_of_the_cluster(
    scenario: Scenario, before: Scenario, caches: dict[Kind, str]
) -> None:
    """If all reads succeed, the age of a cache does not matter: stale objects are read again.

    Except of those that say who else uses a volume: nobody can read that.
    """
    expected = admit(review_of(scenario.pod), cluster(*scenario.objects), scenario.policy)
    caches = {**_longhorn_nodes_as_now(scenario, caches), **dict.fromkeys(OF_USERS, "fresh")}
    found, _ = asyncio.run(answer(scenario, before.objects, caches, set()))
    assert isinstance(expected, Answer)
    assert found.decision.why == expected.decision.why
    assert found.body == expected.body


def _longhorn_nodes_as_now(scenario: Scenario, caches: dict[Kind, str]) -> dict[Kind, str]:
    """Longhorn's nodes count as there where they ever were, and until a list shows that there are none."""
    there = any(path_of(each) == PATHS[Kind.LONGHORN_NODE] for each in scenario.objects)
    if there and caches[Kind.LONGHORN_NODE] != "outdated":
        return caches
    return {**caches, Kind.LONGHORN_NODE: "stale" if there else "fresh"}


@HALF
@given(scenarios())
def test_without_caches_no_node_is_required(scenario: Scenario) -> None:
    """Each object is read, and nobody knows who else uses the volumes."""
    found, _ = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "none"), set()))
    assert not required(found)


@HALF
@given(scenarios())
def test_fresh_caches_ask_only_for_objects_that_they_lack(scenario: Scenario) -> None:
    """The webhook GETs an object that may be too new for the cache, and never one that the cache has."""
    _, reads = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "fresh"), set()))
    assert not reads.existing()
