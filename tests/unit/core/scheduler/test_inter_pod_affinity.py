from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.models.one_node import OneNodeSnapshot
from support.objects import builders
from support.objects.builders import Object

from webhook.core.api.affinity import REQUIRED, PodAffinityTerm
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import SchedulerCache, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import NODES_MAX, TERMS_MAX, CycleState, why_excluded
from webhook.core.scheduler.pod_info import (
    PARTS_NOT_READ,
    TERMS_NOT_READ,
    AntiAffinity,
    PodInfo,
    PodNode,
    anti_affinity,
)
from webhook.core.scheduler.pod_requests import Usage

HOST: Final = "kubernetes.io/hostname"
NODES: Final = (
    builders.node("n1", labels={HOST: "h1", "zone": "a", "rack": "1"}),
    builders.node("n2", labels={HOST: "h2", "zone": "a", "rack": "2"}),
    builders.node("twin-1", labels={HOST: "twin"}),
    builders.node("twin-2", labels={HOST: "twin"}),
    builders.node("bare", labels={HOST: None}),
)
del NODES[-1]["metadata"]["labels"][HOST]
DB: Final = {"matchLabels": {"app": "db"}}


def pod(node: str | None = None, *, app: str = "db", apart: Any = ()) -> Object:
    """A pod, on a node or not, with required anti-affinity."""
    metadata = {"namespace": "vms", "labels": {"app": app}}
    return {"metadata": metadata, "spec": {"nodeName": node, "affinity": {"podAntiAffinity": {REQUIRED: list(apart)}}}}


def keeper(node: str, *terms: Object, **fields: Any) -> Object:
    """A pod with required anti-affinity; without more said, it wants no pod labelled app=db on its node."""
    term = {"topologyKey": HOST, "labelSelector": DB, **fields}
    return pod(node, app="keeper", apart=[*terms, term])


def excluded(cycle: CycleState, nodes: OneNodeSnapshot, candidate: str = "n1") -> Why | None:
    """Return what the anti-affinity of bound pods has against a node, or why it is not compared."""
    found = cycle.excluding
    return found if isinstance(found, Why) else why_excluded(found, nodes.node_info(candidate))


def asked(nodes: OneNodeSnapshot, candidate: str = "n1") -> Why | None:
    """Return the same for a pod labelled app=db."""
    return excluded(CycleState(convert(pod(), Pod), "vms", nodes), nodes, candidate)


def beside(*there: Object) -> OneNodeSnapshot:
    """Return a snapshot of NODES with these bound pods."""
    nodes = OneNodeSnapshot(nodes={each["metadata"]["name"]: convert(each, Node) for each in NODES})
    for each in there:
        add(nodes.scheduler_cache, each)
    return nodes


def add(scheduler_cache: SchedulerCache, bound: Object) -> None:
    """Count a bound pod on its node; what it requests is not counted."""
    spec = bound["spec"]
    terms = convert(spec["affinity"]["podAntiAffinity"][REQUIRED], list[PodAffinityTerm])
    on = PodNode(node=spec["nodeName"], bound=True)
    scheduler_cache.add(PodInfo("vms", Usage(), anti_affinity(terms, "vms"), on))


def reason(why: Why | None) -> Reason | None:
    """Why the node is not accepted, None if it is."""
    return why.reason if why else None


EXCLUDED, PERHAPS = Reason.EXCLUDED_BY_POD, Reason.MAY_BE_EXCLUDED_BY_POD


def test_a_term_over_what_the_node_lacks_hides_no_other() -> None:
    """The node has no label `disk`; the second term is over its hostname."""
    there = keeper("n1", {"topologyKey": "disk", "labelSelector": DB})
    assert reason(asked(beside(there))) is EXCLUDED


def unread(node: str, terms: AntiAffinity) -> OneNodeSnapshot:
    """Return a snapshot with a bound pod of which a field was too long to be read."""
    nodes = beside()
    nodes.scheduler_cache.add(PodInfo("other", Usage(), terms, PodNode(node=node, bound=True)))
    return nodes


@pytest.mark.parametrize(
    ("node", "terms", "candidate", "which"),
    [
        pytest.param("n1", PARTS_NOT_READ, "n1", "node n1", id="a part, on the same node"),
        pytest.param("n2", PARTS_NOT_READ, "n1", None, id="a part, on another node"),
        pytest.param("n2", PARTS_NOT_READ, "bare", "node bare", id="a part, and the node has no hostname"),
        pytest.param("n1", TERMS_NOT_READ, "n1", "some node", id="its terms, on the same node"),
        pytest.param("n2", TERMS_NOT_READ, "n1", "some node", id="its terms, on another node"),
        pytest.param("gone", TERMS_NOT_READ, "bare", "some node", id="its terms, on a node that is not known"),
    ],
)
def test_a_pod_that_was_not_read(node: str, terms: AntiAffinity, candidate: str, which: str | None) -> None:
    """It can exclude every pod: those on its node, or those on any node if its terms were not read."""
    why = asked(unread(node, terms), candidate)
    assert reason(why) is (Reason.POD_NOT_COMPARED if which else None)
    assert which is None or (why is not None and f"a pod on {which} has more than " in why.sentence)


def test_a_pod_that_was_not_read_on_a_node_that_is_not_known() -> None:
    """It may be on this node."""
    assert reason(asked(unread("gone", PARTS_NOT_READ))) is PERHAPS


def test_only_so_many_terms_of_others_are_compared() -> None:
    """Past the bound there is no answer, though none of them is about the pod. Terms that ask for one value of a label
    are found by that value, and cost nothing.
    """
    nodes = beside()

    def add_keeper(*names: str) -> None:
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": list(names)}]}
        add(nodes.scheduler_cache, keeper("n1", labelSelector=selector))

    for number in range(TERMS_MAX):
        add_keeper(str(number))
        add_keeper(str(number), "other")
    assert asked(nodes) is None
    add_keeper("one", "more")
    why = asked(nodes)
    assert why
    assert (why.reason, f"at most {TERMS_MAX} required" in why.sentence) == (Reason.TOO_MANY_EXISTING_TERMS, True)


def test_only_so_many_nodes_are_compared() -> None:
    """Each is a node of a pod whose term is about the incoming pod."""
    nodes = beside()
    for number in range(NODES_MAX):
        add(nodes.scheduler_cache, keeper(f"gone-{number}", topologyKey="disk"))
    assert asked(nodes) is None
    add(nodes.scheduler_cache, keeper("one more", topologyKey="disk"))
    assert reason(asked(nodes)) is Reason.TOO_MANY_EXISTING_TERMS


def test_the_terms_are_looked_up_once_for_all_nodes() -> None:
    """A pod under admission compares with the pods of one moment."""
    nodes = beside(keeper("n1"))
    cycle = CycleState(convert(pod(), Pod), "vms", nodes)
    assert [reason(excluded(cycle, nodes, name)) for name in ("n1", "n2")] == [EXCLUDED, None]
    assert cycle.excluding is cycle.excluding
    without = CycleState(cycle.pod, "vms", SnapshotUnavailable("for a test"))
    assert without.excluding == ()
    assert asked(beside()) is None
