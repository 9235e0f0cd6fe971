from __future__ import annotations

from typing import Any, Final

import pytest
from support.models.plugin_input import PluginRunner, add, cycle_beside, excluded, snapshot
from support.models.scheduler_model import REQUIRED, Object, Situation
from support.objects import builders

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import SchedulerCache, SnapshotUnavailable
from webhook.core.scheduler.cycle_state import NODES_MAX, TERMS_MAX, CycleState
from webhook.core.scheduler.pod_info import PARTS_NOT_READ, TERMS_NOT_READ, AntiAffinity, PodInfo, PodNode
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


def runner(*there: Object, candidate: str = "n1", incoming: Object | None = None) -> PluginRunner:
    """The plugin, asked about a pod labelled app=db."""
    return PluginRunner(Situation(NODES, there, {}, incoming or pod(), candidate))


def reason(why: Why | None) -> Reason | None:
    """Why the node is not accepted, None if it is."""
    return why.reason if why else None


EXCLUDED, PERHAPS = Reason.EXCLUDED_BY_POD, Reason.MAY_BE_EXCLUDED_BY_POD


def test_a_term_over_what_the_node_lacks_hides_no_other() -> None:
    """The node has no label `disk`; the second term is over its hostname."""
    there = keeper("n1", {"topologyKey": "disk", "labelSelector": DB})
    assert reason(runner(there).inter_pod_affinity()) is EXCLUDED


def unread(node: str, terms: AntiAffinity) -> PluginRunner:
    """The plugin, with a bound pod of which a field was too long to be read."""
    asked = runner()
    asked.scheduler_cache.add(PodInfo("other", Usage(), terms, PodNode(node=node, bound=True)))
    return asked


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
    asked = unread(node, terms)
    asked.candidate = candidate
    why = asked.inter_pod_affinity()
    assert reason(why) is (Reason.POD_NOT_COMPARED if which else None)
    assert which is None or (why is not None and f"a pod on {which} has more than " in why.sentence)


def test_a_pod_that_was_not_read_on_a_node_that_is_not_known() -> None:
    """It may be on this node."""
    assert reason(unread("gone", PARTS_NOT_READ).inter_pod_affinity()) is PERHAPS


def test_only_so_many_terms_of_others_are_compared() -> None:
    """Past the bound there is no answer, though none of them is about the pod. Terms that ask for one value of a label
    are found by that value, and cost nothing.
    """
    asked = runner()

    def add_keeper(*names: str) -> None:
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": list(names)}]}
        add(asked.scheduler_cache, keeper("n1", labelSelector=selector))

    for number in range(TERMS_MAX):
        add_keeper(str(number))
        add_keeper(str(number), "other")
    assert asked.inter_pod_affinity() is None
    add_keeper("one", "more")
    why = asked.inter_pod_affinity()
    assert why
    assert (why.reason, f"at most {TERMS_MAX} required" in why.sentence) == (Reason.TOO_MANY_EXISTING_TERMS, True)


def test_only_so_many_nodes_are_compared() -> None:
    """Each is a node of a pod whose term is about the incoming pod."""
    asked = runner()
    for number in range(NODES_MAX):
        add(asked.scheduler_cache, keeper(f"gone-{number}", topologyKey="disk"))
    assert asked.inter_pod_affinity() is None
    add(asked.scheduler_cache, keeper("one more", topologyKey="disk"))
    assert reason(asked.inter_pod_affinity()) is Reason.TOO_MANY_EXISTING_TERMS


def test_the_terms_are_looked_up_once_for_all_nodes() -> None:
    """A pod under admission compares with the pods of one moment."""
    asked = runner(keeper("n1"))
    nodes = snapshot(asked.nodes, asked.scheduler_cache)
    cycle = cycle_beside(pod(), nodes)
    assert [reason(excluded(cycle, nodes, name)) for name in ("n1", "n2")] == [EXCLUDED, None]
    assert cycle.excluding is cycle.excluding
    without = CycleState(cycle.pod, "vms", SnapshotUnavailable("for a test"))
    assert without.excluding == ()
    gone = snapshot(asked.nodes, SchedulerCache())
    assert excluded(cycle_beside(pod(), gone), gone, "n1") is None


def test_a_sentence_names_its_evidence() -> None:
    """Node, topology and pods are in it."""
    why = runner(keeper("n1")).inter_pod_affinity()
    assert why
    assert why.sentence == (
        f"a pod that is, or will be, in the same {HOST} as node n1 has a required anti-affinity that can be meant "
        "for this pod (app=db)"
    )
    why = runner(keeper("gone", topologyKey="zone")).inter_pod_affinity()
    assert why
    assert "over zone, which node n1 has, that can exclude this pod (app=db)" in why.sentence
