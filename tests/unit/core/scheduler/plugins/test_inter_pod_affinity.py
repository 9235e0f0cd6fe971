from collections.abc import Sequence
from typing import Any

import pytest
from support.models.plugin_runner import PluginRunner, add
from support.models.scheduler_model import REQUIRED, Object, Situation, refusals
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import STEPS_MAX
from webhook.core.scheduler.state.pod_info import Presence
from webhook.core.scheduler.status import Passed, Rejected, Status, Unknown

NAMESPACES = {name: {"kubernetes.io/metadata.name": name} for name in ("vms", "other")}
NODES = (
    builders.node("n1", labels={"zone": "a", "rack": "1"}),
    builders.node("n2", labels={"zone": "a", "rack": "2"}),
    builders.node("n3", labels={"zone": "b", "rack": "1"}),
    builders.node("half", labels={"zone": "b"}),
    builders.node("bare", labels={}),
)
DB = {"matchLabels": {"app": "db"}}
UNREADABLE = {"matchExpressions": [{"key": "app", "operator": "In"}]}
BY_TEAM = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
EVERYWHERE: Object = {"namespaceSelector": {}}


def term(key: str = "zone", selector: Object | None = DB, **fields: Any) -> Object:
    """A PodAffinityTerm; without more said, for pods labelled app=db in the same zone."""
    return {"topologyKey": key, "labelSelector": selector, **fields}


def pod(
    node: str | None = None, *, app: str | None = "db", namespace: str = "vms", near: Any = (), apart: Any = ()
) -> Object:
    """A pod, on a node or not, with required terms."""
    kinds = {"podAffinity": near, "podAntiAffinity": apart}
    return {
        "metadata": {"namespace": namespace, "labels": {} if app is None else {"app": app}},
        "spec": {"nodeName": node, "affinity": {kind: {REQUIRED: list(terms)} for kind, terms in kinds.items()}},
    }


def status(incoming_pod: Object, *there: Object, candidate: str = "n1", expected: Sequence[Object] = ()) -> Status:
    """What is ruled; the model must not say otherwise of what is settled, if nothing is merely expected."""
    situation = Situation(NODES, there, NAMESPACES, incoming_pod, candidate)
    ruled = PluginRunner(situation, expected=expected).inter_pod_affinity()
    if not expected and all(each["spec"]["nodeName"] != "gone" for each in there):
        refused = bool(refusals(situation, pinned=False))
        assert isinstance(ruled, Unknown) or isinstance(ruled, Rejected) is refused
    return ruled


NEAR, NEAR_BOTH = pod(app="web", near=[term()]), pod(app="web", near=[term("zone"), term("rack")])
SELFISH = pod(near=[term()])


@pytest.mark.parametrize(
    ("incoming_pod", "there", "cause"),
    [
        pytest.param(pod(), [pod("n1")], None, id="no rules"),
        pytest.param(NEAR, [pod("n1")], None, id="there"),
        pytest.param(NEAR, [pod("n2")], None, id="on another node of the zone"),
        pytest.param(NEAR, [pod("n3")], Reason.POD_AFFINITY_UNMET, id="in another zone"),
        pytest.param(NEAR, [pod("n1", app="web")], Reason.POD_AFFINITY_UNMET, id="of other labels"),
        pytest.param(NEAR, [pod("n1", namespace="other")], Reason.POD_AFFINITY_UNMET, id="in another namespace"),
        pytest.param(NEAR, [], Reason.POD_AFFINITY_UNMET, id="nowhere"),
        pytest.param(NEAR_BOTH, [pod("n1")], None, id="one pod for both terms"),
        pytest.param(NEAR_BOTH, [pod("n2"), pod("n3")], None, id="a pod for each term"),
        pytest.param(NEAR_BOTH, [pod("n2")], Reason.POD_AFFINITY_UNMET, id="a pod for one term of two"),
        pytest.param(
            pod(near=[term(), term(selector={"matchLabels": {"app": "web"}})]),
            [pod("n1"), pod("n1", app="web")],
            Reason.POD_AFFINITY_UNMET,
            id="no pod matches all terms, though each is matched",
        ),
        pytest.param(SELFISH, [], None, id="the first of its kind"),
        pytest.param(SELFISH, [pod("n3")], Reason.POD_AFFINITY_UNMET, id="not the first, and apart"),
        pytest.param(
            pod(near=[term("zone"), term("rack")]),
            [pod("half")],
            Reason.POD_AFFINITY_UNMET,
            id="not the first, though it counts for one topology of two only",
        ),
        pytest.param(SELFISH, [pod("bare")], None, id="the first where it counts: the other's node has no zone"),
        pytest.param(
            pod(near=[term(), term("disk")]),
            [],
            Reason.TOPOLOGY_LABEL_MISSING,
            id="the first, on a node without a label",
        ),
        pytest.param(
            pod(near=[term(namespaces=["other"])]),
            [],
            Reason.POD_AFFINITY_UNMET,
            id="its own kind, of another namespace",
        ),
        pytest.param(pod(near=[term(**EVERYWHERE)]), [pod("n2", namespace="other")], None, id="in any namespace"),
        pytest.param(
            pod(near=[term(**BY_TEAM)]), [], Reason.NAMESPACES_UNKNOWN, id="the first, if its namespace counts"
        ),
        pytest.param(
            pod(near=[term(**BY_TEAM)]), [pod("n1")], Reason.NAMESPACES_UNKNOWN, id="there, if its namespace counts"
        ),
        pytest.param(
            pod(near=[term(namespaces=["vms"], **BY_TEAM)]), [pod("n1")], None, id="there, whatever else counts"
        ),
        pytest.param(NEAR, [pod("gone")], Reason.NEIGHBOUR_ON_UNKNOWN_NODE, id="on a node that is not known"),
        pytest.param(NEAR, [pod("gone"), pod("n2")], None, id="on a known node as well"),
        pytest.param(
            pod(near=[term(selector=UNREADABLE)]), [], Reason.SELECTOR_UNREADABLE, id="a selector that does not parse"
        ),
        pytest.param(
            pod(near=[term(selector={"matchLabels": {"controller-uid": "1"}})]),
            [],
            Reason.LABEL_NOT_KEPT,
            id="a label that is not kept",
        ),
    ],
)
def test_required_affinity(incoming_pod: Object, there: list[Object], cause: Reason | None) -> None:
    """The incoming pod must have, in each term's topology, a pod that matches all terms."""
    assert getattr(status(incoming_pod, *there), "cause", None) is cause


APART, APART_BOTH = pod(apart=[term()]), pod(apart=[term("zone"), term("rack", {"matchLabels": {"app": "web"}})])


@pytest.mark.parametrize(
    ("incoming_pod", "there", "cause"),
    [
        pytest.param(APART, [], None, id="nobody"),
        pytest.param(APART, [pod("n1")], Reason.POD_ANTI_AFFINITY, id="there"),
        pytest.param(APART, [pod("n2")], Reason.POD_ANTI_AFFINITY, id="on another node of the zone"),
        pytest.param(APART, [pod("n3")], None, id="in another zone"),
        pytest.param(APART, [pod("bare")], None, id="on a node without a zone"),
        pytest.param(APART, [pod("n1", app="web")], None, id="of other labels"),
        pytest.param(APART, [pod("n1", namespace="other")], None, id="in another namespace"),
        pytest.param(APART_BOTH, [pod("n3", app="web")], Reason.POD_ANTI_AFFINITY, id="by the second term"),
        pytest.param(APART_BOTH, [pod("n2", app="web"), pod("n3")], None, id="each in the other's topology"),
        pytest.param(pod(apart=[term("disk")]), [pod("n1")], None, id="the node has no such label"),
        pytest.param(
            pod(apart=[term(**EVERYWHERE)]),
            [pod("n1", namespace="other")],
            Reason.POD_ANTI_AFFINITY,
            id="any namespace",
        ),
        pytest.param(
            pod(apart=[term(**BY_TEAM)]), [pod("n2")], Reason.NAMESPACES_UNKNOWN, id="there, if its namespace counts"
        ),
        pytest.param(pod(apart=[term(**BY_TEAM)]), [pod("n3")], None, id="apart, whether its namespace counts or not"),
        pytest.param(APART, [pod("gone")], Reason.NEIGHBOUR_ON_UNKNOWN_NODE, id="on a node that is not known"),
        pytest.param(APART, [pod("gone"), pod("n1")], Reason.POD_ANTI_AFFINITY, id="on a known node as well"),
        pytest.param(
            pod(apart=[term(selector=UNREADABLE)]), [], Reason.SELECTOR_UNREADABLE, id="a selector that does not parse"
        ),
        pytest.param(
            pod(apart=[term(selector={"matchLabels": {"kubevirt.io/created-by": "1"}})]),
            [],
            Reason.LABEL_NOT_KEPT,
            id="a label that is not kept",
        ),
    ],
)
def test_required_anti_affinity(incoming_pod: Object, there: list[Object], cause: Reason | None) -> None:
    """The incoming pod must have, in each term's topology, no pod that matches the term."""
    assert getattr(status(incoming_pod, *there), "cause", None) is cause


def keeper(node: str, **fields: Any) -> Object:
    """A pod that wants no db in its zone."""
    return pod(node, app="keeper", apart=[term(**fields)])


@pytest.mark.parametrize(
    ("incoming_pod", "there", "cause"),
    [
        pytest.param(pod(), keeper("n1"), Reason.REPELLED, id="on the node"),
        pytest.param(pod(), keeper("n2"), Reason.REPELLED, id="in the zone"),
        pytest.param(pod(), keeper("n3"), None, id="in another zone"),
        pytest.param(pod(), keeper("bare"), None, id="on a node without a zone"),
        pytest.param(pod(app="web"), keeper("n1"), None, id="against others"),
        pytest.param(pod(app=None), keeper("n1", selector={}), Reason.REPELLED, id="against all"),
        pytest.param(pod(), keeper("n1", selector=None), None, id="against none"),
        pytest.param(pod(), keeper("n1", key="disk"), None, id="in a topology that the node has not"),
        pytest.param(pod(namespace="other"), keeper("n1"), None, id="against its own namespace only"),
        pytest.param(pod(namespace="other"), keeper("n1", namespaces=["other"]), Reason.REPELLED, id="against another"),
        pytest.param(pod(namespace="other"), keeper("n1", **EVERYWHERE), Reason.REPELLED, id="against any namespace"),
        pytest.param(
            pod(namespace="other"),
            keeper("n1", namespaces=["vms"], **EVERYWHERE),
            Reason.REPELLED,
            id="a name, and any",
        ),
        pytest.param(pod(), keeper("n1", **BY_TEAM), Reason.NAMESPACES_UNKNOWN, id="if the namespace counts"),
        pytest.param(pod(), keeper("n3", **BY_TEAM), None, id="in another zone, if the namespace counts"),
        pytest.param(pod(), keeper("gone"), Reason.NEIGHBOUR_ON_UNKNOWN_NODE, id="on a node that is not known"),
    ],
)
def test_anti_affinity_of_those_there(incoming_pod: Object, there: Object, cause: Reason | None) -> None:
    """A pod on a node can keep away an incoming pod that has no rules itself."""
    assert getattr(status(incoming_pod, there), "cause", None) is cause


@pytest.mark.parametrize(
    ("incoming_pod", "coming", "cause"),
    [
        pytest.param(APART, pod("n2"), Reason.NEIGHBOUR_EXPECTED, id="where it would be in the way"),
        pytest.param(APART, pod("n3"), None, id="where it would not"),
        pytest.param(APART, pod("gone"), Reason.NEIGHBOUR_EXPECTED, id="on a node that is not known"),
        pytest.param(pod(), keeper("n2"), Reason.NEIGHBOUR_EXPECTED, id="with rules against the incoming pod"),
        pytest.param(pod(), keeper("n3"), None, id="with rules, elsewhere"),
        pytest.param(NEAR, pod("n1"), Reason.NEIGHBOUR_EXPECTED, id="where it would be wanted"),
        pytest.param(SELFISH, pod("n3"), Reason.NEIGHBOUR_EXPECTED, id="perhaps the first of its kind"),
    ],
)
def test_a_pod_that_is_expected(incoming_pod: Object, coming: Object, cause: Reason | None) -> None:
    """A pod that is not bound yet is no reason to allow what it alone would allow, nor to risk what it would refuse."""
    assert getattr(status(incoming_pod, expected=[coming]), "cause", None) is cause


def test_a_pod_that_is_leaving_counts() -> None:
    """A terminating pod has its place until it is gone, for the scheduler too."""
    leaving = pod("n1")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    assert status(NEAR, leaving) == Passed()
    assert getattr(status(APART, leaving), "cause", None) is Reason.POD_ANTI_AFFINITY


@pytest.mark.parametrize(
    ("incoming_pod", "there", "which"),
    [
        pytest.param(
            pod(near=[term(selector={}, matchLabelKeys=["app"])]),
            pod("n3", app="web"),
            "affinity",
            id="no longer the first of its kind",
        ),
        pytest.param(
            pod(apart=[term(selector={}, matchLabelKeys=["app"])]),
            pod("n1", app="web"),
            "anti-affinity",
            id="apart from more pods",
        ),
        pytest.param(
            pod(apart=[term(mismatchLabelKeys=["app"])]), pod("n1"), "anti-affinity", id="apart from its own kind"
        ),
    ],
)
def test_without_its_label_keys_a_term_would_refuse(incoming_pod: Object, there: Object, which: str) -> None:
    """Kubernetes 1.30 drops the keys after admission. So the node is not allowed."""
    assert status(incoming_pod, there) == Unknown(Reason.MATCH_LABEL_KEYS, {"node": "n1", "which": which})


def test_a_refusal_outweighs_what_is_not_known() -> None:
    """If one rule rejects and another is unknown, the status is Rejected."""
    incoming_pod = pod(apart=[term(**BY_TEAM), term("rack", {"matchLabels": {"app": "web"}})])
    assert getattr(status(incoming_pod, pod("n1")), "cause", None) is Reason.NAMESPACES_UNKNOWN
    assert getattr(status(incoming_pod, pod("n1"), pod("n1", app="web")), "cause", None) is Reason.POD_ANTI_AFFINITY


def test_too_many_repellers_to_look_at() -> None:
    """Past a bound of nodes whose pods might refuse there is no answer; the candidate's own pods are no exception."""
    judge = PluginRunner(Situation(NODES, (), NAMESPACES, pod(), "n1"))
    for number in range(STEPS_MAX + 1):
        add(judge.pod_index, keeper(f"far-{number}"))
    told = judge.inter_pod_affinity()
    assert isinstance(told, Unknown)
    assert (told.cause, str(STEPS_MAX) in told.why.sentence) == (Reason.TOO_MANY_NEIGHBOURS, True)


def test_a_sentence_names_its_evidence() -> None:
    """Node, topology and pods are in it."""
    told = status(pod(), keeper("n2"))
    assert isinstance(told, Rejected)
    assert told.why.sentence == (
        "a pod in the same zone as node n1 has a required anti-affinity that excludes this pod (app=db)"
    )


def test_presences_differ() -> None:
    """A term of an expected pod is not taken for one of a bound pod, which goes at another time."""
    judge = PluginRunner(Situation(NODES, [keeper("n1")], NAMESPACES, pod(), "n1"))
    coming = add(judge.pod_index, keeper("n1"), Presence.EXPECTED)
    assert len(judge.pod_index.existing_anti_affinity) == 2
    judge.pod_index.remove(coming)
    assert getattr(judge.inter_pod_affinity(), "cause", None) is Reason.REPELLED
