"""A share-manager pod is steered to nodes of VMs only, and never pinned, even if caches are out of date or missing."""

from __future__ import annotations

import asyncio
from typing import Final

from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.faulty_cluster import CACHED, CACHES, HALF, answer
from support.fakes.live import RESOURCES
from support.fakes.views import cluster
from support.models.consumer_model import Model
from support.models.outcomes import ask
from support.strategies.steering_scenarios import VOLUME, scenarios
from support.strategies.strategies import Scenario

from webhook.core.api.meta import NamespacedName
from webhook.core.decision import Leave, Pin, Steer
from webhook.core.reasons import Reason
from webhook.core.view import Kind

TRUE: Final = st.sampled_from(["fresh", "fresh", "stale", "none"])
TICKETS: Final = RESOURCES[Kind.VOLUME_ATTACHMENT].item(NamespacedName("", VOLUME))
MOST: Final = 1 + 2 * 4
"""Reads beside those of objects that a fresh cache has not: the tickets; of two namespaces, the pods of four nodes."""


@given(scenarios(large=False), scenarios(large=False), CACHES, st.sets(st.integers(1, 20)) | st.just(set(range(1, 99))))
def test_a_share_manager_pod_is_never_pinned(
    scenario: Scenario, before: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With stale caches and failed reads, the result is a preference or nothing, and the webhook always answers."""
    found, reads = asyncio.run(answer(scenario, before.objects, caches, failing))
    decision = found.decision
    note(type(decision).__name__)
    assert isinstance(decision, Steer | Leave), decision
    assert decision.why.reason not in (Reason.INTERNAL_ERROR, Reason.PATCH_DOES_NOT_APPLY)
    if isinstance(decision, Pin):
        assert (decision.required, decision.shortlist) == ((), ())
    assert reads.lists <= MOST


@given(
    scenarios(large=False), st.fixed_dictionaries(dict.fromkeys(CACHED, TRUE)), st.sets(st.integers(1, 20), max_size=3)
)
def test_a_share_manager_pod_is_steered_to_nodes_of_vms_only(
    scenario: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With complete caches or with none, each preferred node is one that a VM needs."""
    found, _ = asyncio.run(answer(scenario, (), caches, failing))
    nodes = found.decision.nodes if isinstance(found.decision, Pin) else ()
    note("steered" if nodes else found.decision.why.reason.code)
    assert set(nodes) <= Model(scenario).homes


@HALF
@given(scenarios(large=False))
def test_the_answer_of_fresh_caches_is_that_of_files(scenario: Scenario) -> None:
    """Byte for byte. This needs caches: without them nobody finds a restored volume, or a VM without a ticket."""
    expected = ask(scenario.pod, scenario, cluster(*scenario.objects))
    found, _ = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "fresh"), set()))
    assert (found.body, found.decision.why) == (expected.body, expected.decision.why)


@HALF
@given(scenarios(large=False))
def test_fresh_caches_ask_for_tickets_and_objects_that_they_lack(scenario: Scenario) -> None:
    """The webhook reads one existing object, and only if no VM has a node: the volume's VolumeAttachment."""
    found, reads = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "fresh"), set()))
    there = reads.existing()
    assert there in ([], [TICKETS])
    on_a_node = {Reason.CONSUMER_ON_NODE, Reason.CONSUMER_TERMINATING, Reason.CONSUMER_PINNED}
    if found.decision.why.reason in on_a_node and TICKETS not in reads.asked:
        assert reads.lists == 0
    note(f"{len(there)} there, {reads.lists} lists")
