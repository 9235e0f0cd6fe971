from collections.abc import Sequence
from typing import Any

import pytest
from support.models.plugin_runner import UNKNOWN, PluginRunner, add
from support.models.scheduler_model import REQUIRED, Object, Situation, refusals
from support.objects import builders

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.plugins.inter_pod_affinity import EXISTING_PLACES_MAX, EXISTING_TERMS_MAX

HOST = "kubernetes.io/hostname"
NAMESPACES = {name: {"kubernetes.io/metadata.name": name} for name in ("vms", "other")}
NODES = (
    builders.node("n1", labels={HOST: "h1", "zone": "a", "rack": "1"}),
    builders.node("n2", labels={HOST: "h2", "zone": "a", "rack": "2"}),
    builders.node("twin-1", labels={HOST: "twin"}),
    builders.node("twin-2", labels={HOST: "twin"}),
    builders.node("bare", labels={HOST: None}),
)
del NODES[-1]["metadata"]["labels"][HOST]
DB = {"matchLabels": {"app": "db"}}
UNREADABLE = {"matchExpressions": [{"key": "app", "operator": "In"}]}
BY_TEAM = {"namespaceSelector": {"matchLabels": {"team": "a"}}}


def term(key: str = HOST, selector: Object | None = DB, **fields: Any) -> Object:
    """A PodAffinityTerm; without more said, for pods labelled app=db on the same node."""
    return {"topologyKey": key, "labelSelector": selector, **fields}


def pod(node: str | None = None, *, app: str | None = "db", near: Any = (), apart: Any = ()) -> Object:
    """A pod, on a node or not, with required terms."""
    kinds = {"podAffinity": near, "podAntiAffinity": apart}
    return {
        "metadata": {"namespace": "vms", "labels": {} if app is None else {"app": app}},
        "spec": {"nodeName": node, "affinity": {kind: {REQUIRED: list(terms)} for kind, terms in kinds.items()}},
    }


def why_not(incoming_pod: Object, *there: Object, candidate: str = "n1", expected: Sequence[Object] = ()) -> Why | None:
    """What is ruled; the model must not say otherwise of what is settled, if nothing is merely expected."""
    situation = Situation(NODES, there, NAMESPACES, incoming_pod, candidate)
    ruled = PluginRunner(situation, expected=expected).inter_pod_affinity()
    if not expected:
        refused = bool(refusals(situation, pinned=False))
        assert (ruled and ruled.reason in UNKNOWN) or (ruled is not None) is refused
    return ruled


def cause(ruled: Why | None) -> Reason | None:
    """Why the node is not accepted, None if it is."""
    return ruled and ruled.reason


NEAR, SELFISH = pod(app="web", near=[term()]), pod(near=[term()])


@pytest.mark.parametrize(
    ("incoming_pod", "there", "why"),
    [
        pytest.param(SELFISH, [], Reason.POD_AFFINITY_UNMET, id="perhaps the first of its kind"),
        pytest.param(pod(near=[term(namespaces=["other"])]), [], Reason.POD_AFFINITY_UNMET, id="never the first"),
        pytest.param(pod(near=[term(**BY_TEAM)]), [pod("n1")], Reason.NAMESPACES_UNKNOWN, id="if its namespace counts"),
        pytest.param(pod(near=[term(namespaces=["vms"], **BY_TEAM)]), [pod("n1")], None, id="whatever else counts"),
        pytest.param(
            pod(near=[term("zone")]),
            [pod("n2")],
            Reason.INTER_POD_AFFINITY,
            id="over zones, though one is there",
        ),
    ],
)
def test_required_affinity(incoming_pod: Object, there: list[Object], why: Reason | None) -> None:
    """The incoming pod must have, on the node, a pod that matches all terms."""
    assert cause(why_not(incoming_pod, *there)) is why


APART = pod(apart=[term()])


@pytest.mark.parametrize(
    ("incoming_pod", "there", "why"),
    [
        pytest.param(APART, [pod("bare")], None, id="on a node without the label"),
        pytest.param(APART, [pod("gone")], None, id="on a node that is not known"),
        pytest.param(
            pod(apart=[term(**BY_TEAM)]), [pod("n1")], Reason.NAMESPACES_UNKNOWN, id="if its namespace counts"
        ),
        pytest.param(pod(apart=[term(**BY_TEAM)]), [pod("n2")], None, id="apart, whichever namespaces count"),
        pytest.param(
            pod(apart=[term("disk")]), [pod("n1")], Reason.INTER_POD_AFFINITY, id="over what the node has not"
        ),
    ],
)
def test_required_anti_affinity(incoming_pod: Object, there: list[Object], why: Reason | None) -> None:
    """The incoming pod must have, on the node, no pod that matches a term."""
    assert cause(why_not(incoming_pod, *there)) is why


def keeper(node: str, **fields: Any) -> Object:
    """A pod that wants no db on its node."""
    return pod(node, app="keeper", apart=[term(**fields)])


@pytest.mark.parametrize(
    ("incoming_pod", "there", "why"),
    [
        pytest.param(pod(), keeper("n1", selector=UNREADABLE), None, id="what does not parse is ignored"),
        pytest.param(pod(), keeper("n1", **BY_TEAM), Reason.NAMESPACES_UNKNOWN, id="if the namespace counts"),
        pytest.param(pod(), keeper("n2", **BY_TEAM), None, id="on another node, if the namespace counts"),
        pytest.param(
            pod(), keeper("gone", key="zone"), Reason.MAY_BE_EXCLUDED_BY_POD, id="over zones, on a node not known"
        ),
        pytest.param(pod(), keeper("gone", key="disk"), None, id="over what the node has not, on a node not known"),
        pytest.param(pod(), keeper("n1", key="disk"), None, id="over what the node has not"),
        pytest.param(pod(), keeper("n2", key="zone"), Reason.EXCLUDED_BY_POD, id="in the same zone"),
        pytest.param(pod(), keeper("n2", key="rack"), None, id="in another rack"),
        pytest.param(pod(), keeper("twin-1", key="zone"), None, id="over zones, on a node without a zone"),
        pytest.param(
            pod(), keeper("n2", key="zone", **BY_TEAM), Reason.NAMESPACES_UNKNOWN, id="over zones, perhaps about it"
        ),
    ],
)
def test_anti_affinity_of_those_there(incoming_pod: Object, there: Object, why: Reason | None) -> None:
    """A pod on a node can keep away an incoming pod that has no rules itself."""
    assert cause(why_not(incoming_pod, there)) is why


@pytest.mark.parametrize(
    ("incoming_pod", "coming", "why"),
    [
        pytest.param(APART, pod("n1"), Reason.DEPENDS_ON_UNSCHEDULED_POD, id="where it would be in the way"),
        pytest.param(APART, pod("n2"), None, id="where it would not"),
        pytest.param(pod(), keeper("n1"), Reason.DEPENDS_ON_UNSCHEDULED_POD, id="with rules against the incoming pod"),
        pytest.param(pod(), keeper("n2"), None, id="with rules, elsewhere"),
        pytest.param(
            pod(), keeper("n2", key="zone"), Reason.DEPENDS_ON_UNSCHEDULED_POD, id="with rules over the zone of both"
        ),
        pytest.param(pod(), keeper("n2", key="rack"), None, id="with rules over another rack"),
        pytest.param(NEAR, pod("n1"), Reason.DEPENDS_ON_UNSCHEDULED_POD, id="where it would be wanted"),
        pytest.param(
            pod(apart=[term(**BY_TEAM)]),
            pod("n1"),
            Reason.NAMESPACES_UNKNOWN,
            id="if its namespace counts",
        ),
    ],
)
def test_a_pod_that_is_expected(incoming_pod: Object, coming: Object, why: Reason | None) -> None:
    """A pod that is not bound yet is no reason to allow what it alone would allow, nor to risk what it would refuse."""
    assert cause(why_not(incoming_pod, expected=[coming])) is why


def test_a_pod_that_is_leaving_counts() -> None:
    """A terminating pod has its place until it is gone, for the scheduler too."""
    leaving = pod("n1")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert why_not(NEAR, leaving) is None
    assert cause(why_not(APART, leaving)) is Reason.POD_ANTI_AFFINITY


@pytest.mark.parametrize(
    ("incoming_pod", "why"),
    [
        pytest.param(APART, None, id="apart"),
        pytest.param(NEAR, Reason.TOPOLOGY_LABEL_MISSING, id="near"),
    ],
)
def test_a_node_without_a_hostname(incoming_pod: Object, why: Reason | None) -> None:
    """No pod is in the same topology as such a node."""
    assert cause(why_not(incoming_pod, pod("bare"), keeper("bare"), candidate="bare")) is why


@pytest.mark.parametrize("incoming_pod", [pod(), APART, NEAR], ids=["no rules", "apart", "near"])
def test_two_nodes_with_one_hostname(incoming_pod: Object) -> None:
    """They are one topology, so that the pods of one of them decide nothing."""
    assert cause(why_not(incoming_pod, candidate="twin-1")) is Reason.HOSTNAME_NOT_UNIQUE
    assert (
        cause(why_not(incoming_pod, pod("twin-2"), keeper("twin-2"), candidate="twin-1")) is Reason.HOSTNAME_NOT_UNIQUE
    )


@pytest.mark.parametrize(
    ("incoming_pod", "which"),
    [
        pytest.param(pod(near=[term(selector={}, matchLabelKeys=["app"])]), "affinity", id="near its own kind"),
        pytest.param(pod(apart=[term(mismatchLabelKeys=["app"])]), "anti-affinity", id="apart from its own kind"),
    ],
)
def test_label_keys_are_not_decided(incoming_pod: Object, which: str) -> None:
    """Kubernetes 1.30 drops the keys after admission, and a later one merges them. So no pod on the node rejects."""
    assert cause(why_not(incoming_pod, pod("n1"), pod("n1", app="web"))) is Reason.MATCH_LABEL_KEYS
    runner = PluginRunner(Situation(NODES, (), NAMESPACES, incoming_pod, "n2"))
    assert runner.pre_filter() == Reason.MATCH_LABEL_KEYS.why(which=which)


@pytest.mark.parametrize(("node", "key"), [("n1", HOST), ("n2", "zone")])
def test_only_so_many_terms_of_others_are_compared(node: str, key: str) -> None:
    """Past the bound there is no answer, though none of them is about the pod."""
    runner = PluginRunner(Situation(NODES, (), NAMESPACES, pod(), "n1"))
    for number in range(EXISTING_TERMS_MAX):
        add(runner.scheduler_cache, keeper(node, key=key, selector={"matchLabels": {"app": str(number)}}))
    assert runner.inter_pod_affinity() is None
    add(runner.scheduler_cache, keeper(node, key=key, selector={"matchLabels": {"app": "one more"}}))
    told = runner.inter_pod_affinity()
    assert told
    assert (told.reason, "1001" in told.sentence) == (Reason.TOO_MANY_EXISTING_TERMS, True)


def test_only_so_many_places_of_wide_terms_are_compared() -> None:
    """Each is a node of a pod whose term is about the incoming pod."""
    runner = PluginRunner(Situation(NODES, (), NAMESPACES, pod(), "n1"))
    for number in range(EXISTING_PLACES_MAX):
        add(runner.scheduler_cache, keeper(f"gone-{number}", key="disk"))
    assert runner.inter_pod_affinity() is None
    add(runner.scheduler_cache, keeper("one more", key="disk"))
    assert cause(runner.inter_pod_affinity()) is cause(runner.pre_filter()) is Reason.TOO_MANY_EXISTING_TERMS


def test_a_sentence_names_its_evidence() -> None:
    """Node, topology and pods are in it."""
    told = why_not(pod(), keeper("n1"))
    assert told
    assert told.sentence == (
        f"a pod in the same {HOST} as node n1 has a required anti-affinity that excludes this pod (app=db)"
    )
    told = why_not(pod(), keeper("gone", key="zone"))
    assert told
    assert "over zone, which node n1 has, that can exclude this pod (app=db)" in told.sentence


def test_bound_and_expected_pods_differ() -> None:
    """A term of an expected pod is not taken for one of a bound pod, which goes at another time."""
    runner = PluginRunner(Situation(NODES, [keeper("n1")], NAMESPACES, pod(), "n1"))
    coming = add(runner.scheduler_cache, keeper("n1"), bound=False)
    runner.scheduler_cache.remove(coming)
    assert cause(runner.inter_pod_affinity()) is Reason.EXCLUDED_BY_POD
