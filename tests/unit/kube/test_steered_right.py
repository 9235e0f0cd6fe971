"""A share-manager pod is steered to nodes of VMs only, and never pinned, even if caches are out of date or missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.faulty_cluster import CACHED, CACHES, HALF, answer
from support.fakes.live import RESOURCES
from support.strategies.consumer_shapes import VOLUME, cold_starts
from support.strategies.quirks import Object
from support.strategies.strategies import Scenario

from webhook.core.api.meta import NamespacedName
from webhook.core.api.node_selector import is_node_name
from webhook.core.decision import Leave, Pin, Steer
from webhook.core.reasons import Reason
from webhook.core.view import Kind

TRUE: Final = st.sampled_from(["fresh", "fresh", "stale", "none"])
TICKETS: Final = RESOURCES[Kind.VOLUME_ATTACHMENT].item(NamespacedName("", VOLUME))
MOST: Final = 1 + 2 * 4
"""Reads beside those of objects that a fresh cache has not: the tickets; of two namespaces, the pods of four nodes."""


def wanted_on(objects: Sequence[Object]) -> set[str]:
    """The nodes that a VM which asks for it is on, is bound for, or may be on, as a ticket tells; by plain looks."""
    claims = set()
    for each in objects:
        csi = each["spec"].get("csi") or {} if each["kind"] == "PersistentVolume" else {}
        if (csi.get("driver"), csi.get("volumeHandle")) == ("driver.longhorn.io", VOLUME):
            claim = each["spec"].get("claimRef") or {}
            claims.add((claim.get("namespace", ""), claim.get("name")))
    found: set[str] = set()
    for pod in objects:
        if pod["kind"] == "Pod" and _asks(pod) and claims & _claims(pod):
            node = pod["spec"].get("nodeName")
            found |= {node} if node else _pinned(pod) | _ticketed(objects)
    return {node for node in found if is_node_name(node)}


def _asks(pod: Object) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return annotations.get("kubevirt-scheduler/co-schedule") in ("true", "required", "preferred")


def _claims(pod: Object) -> set[tuple[str, str]]:
    sources = [volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or []]
    return {(pod["metadata"]["namespace"], source["claimName"]) for source in sources if source}


def _pinned(pod: Object) -> set[str]:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    return {value for term in terms for field in term.get("matchFields") or [] for value in field["values"]}


def _ticketed(objects: Sequence[Object]) -> set[str]:
    attachments = [each["spec"].get("attachmentTickets") for each in objects if each["kind"] == "VolumeAttachment"]
    tickets = [ticket for each in attachments for ticket in (each or {}).values()]
    return {ticket["nodeID"] for ticket in tickets if ticket["type"] == "csi-attacher" and ticket["nodeID"]}


@given(cold_starts(), cold_starts(), CACHES, st.sets(st.integers(1, 20)) | st.just(set(range(1, 99))))
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


@given(cold_starts(), st.fixed_dictionaries(dict.fromkeys(CACHED, TRUE)), st.sets(st.integers(1, 20), max_size=3))
def test_a_share_manager_pod_is_steered_to_nodes_of_vms_only(
    scenario: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With complete caches or with none, each preferred node is one that a VM needs."""
    found, _ = asyncio.run(answer(scenario, (), caches, failing))
    nodes = found.decision.nodes if isinstance(found.decision, Pin) else ()
    note("steered" if nodes else found.decision.why.reason.code)
    assert set(nodes) <= wanted_on(scenario.objects)


@HALF
@given(cold_starts())
def test_fresh_caches_ask_for_tickets_and_objects_that_they_lack(scenario: Scenario) -> None:
    """The webhook reads one existing object, and only if no VM has a node: the volume's VolumeAttachment."""
    found, reads = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "fresh"), set()))
    there = reads.existing()
    assert there in ([], [TICKETS])
    on_a_node = {Reason.CONSUMER_ON_NODE, Reason.CONSUMER_TERMINATING, Reason.CONSUMER_PINNED}
    if found.decision.why.reason in on_a_node and TICKETS not in reads.asked:
        assert reads.lists == 0
    note(f"{len(there)} there, {reads.lists} lists")
