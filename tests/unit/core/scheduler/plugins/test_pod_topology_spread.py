from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import convert
from support.models.plugin_runner import PluginRunner
from support.models.scheduler_model import Object, Situation, refusals
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.status import Passed, Rejected, Status, Unknown

NODES = (
    builders.node("a1", labels={"zone": "a", "host": "a1", "pool": "vms"}),
    builders.node("a2", labels={"zone": "a", "host": "a2", "pool": "vms"}),
    builders.node("b1", labels={"zone": "b", "host": "b1", "pool": "vms"}),
    builders.node("c1", labels={"zone": "c", "host": "c1"}, taints=["reserved:NoSchedule", "slow:PreferNoSchedule"]),
    builders.node("bare", labels={"pool": "vms"}),
)
TWO_ZONES = {"pool": "vms"}
TOLERANT = [{"key": "reserved", "operator": "Exists"}]


def spread(key: str = "zone", skew: int = 1, **fields: Any) -> Object:
    """A hard constraint; without more said, of pods labelled app=db over zones."""
    selector = {"matchLabels": {"app": "db"}}
    hard = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologyKey": key, "maxSkew": skew, **hard, **fields}


def pods(namespace: str = "vms", **numbers: int) -> list[Object]:
    """So many pods labelled app=db on each node."""
    metadata = {"namespace": namespace, "labels": {"app": "db", "release": "r1"}}
    return [
        {"metadata": metadata, "spec": {"nodeName": node}} for node, number in numbers.items() for _ in range(number)
    ]


def status(
    constraints: Sequence[Object],
    there: Sequence[Object] = (),
    *,
    candidate: str = "a1",
    labels: Mapping[str, str] | None = None,
    expected: Sequence[Object] = (),
    **spec: Any,
) -> Status:
    """What is ruled; the model must not say otherwise of what is settled, if nothing is merely expected."""
    labels = {"app": "db", "release": "r2"} if labels is None else labels
    incoming_pod = {
        "metadata": {"namespace": "vms", "labels": labels},
        "spec": {"topologySpreadConstraints": constraints, **spec},
    }
    situation = Situation(NODES, there, {"vms": {}, "other": {}}, incoming_pod, candidate)
    ruled = PluginRunner(situation, expected=expected).pod_topology_spread()
    if not expected and not isinstance(ruled, Unknown):
        refused = any(refusals(situation, pinned=pinned) for pinned in (False, True))
        assert isinstance(ruled, Rejected) is refused
    return ruled


IGNORED, HONORED = {"nodeAffinityPolicy": "Ignore"}, {"nodeTaintsPolicy": "Honor"}


@pytest.mark.parametrize(
    ("constraints", "there", "spec", "cause"),
    [
        pytest.param([], pods(a1=9), {}, None, id="no constraints"),
        pytest.param([spread()], [], {}, None, id="nobody anywhere"),
        pytest.param([spread()], pods(a1=1), {}, Reason.SPREAD_SKEW, id="one more than elsewhere"),
        pytest.param([spread()], pods(a2=1), {}, Reason.SPREAD_SKEW, id="on another node of the zone"),
        pytest.param([spread("host")], pods(a2=1), {}, None, id="on another node, by host"),
        pytest.param([spread(skew=2)], pods(a1=1), {}, None, id="as far as maxSkew"),
        pytest.param([spread(skew=2)], pods(a1=1, a2=1), {}, Reason.SPREAD_SKEW, id="beyond maxSkew"),
        pytest.param([spread()], pods(a1=1, b1=1, c1=1), {}, None, id="as many as elsewhere"),
        pytest.param([spread()], pods(a1=2, b1=1, c1=1), {}, Reason.SPREAD_SKEW, id="more than elsewhere"),
        pytest.param([spread()], pods(a1=1, b1=5), {}, Reason.SPREAD_SKEW, id="the least counts"),
        pytest.param([spread(whenUnsatisfiable="ScheduleAnyway")], pods(a1=5), {}, None, id="a soft one"),
        pytest.param([spread()], pods("other", a1=5), {}, None, id="pods of another namespace"),
        pytest.param([spread()], pods(bare=5), {}, None, id="pods where there is no zone"),
        pytest.param([spread(), spread("host")], pods(a2=1, b1=1, c1=1), {}, None, id="two constraints, both met"),
        pytest.param([spread(skew=9), spread("host")], pods(a1=1), {}, Reason.SPREAD_SKEW, id="two, the second is not"),
        pytest.param([spread()], pods(a1=1), {"labels": {}}, None, id="the incoming pod itself does not count"),
        pytest.param([spread(labelSelector=None)], pods(a1=9), {}, None, id="a selector of nothing"),
        pytest.param([spread(labelSelector={})], pods(a1=9), {}, None, id="an empty selector counts nobody there"),
        pytest.param([spread(matchLabelKeys=["release"])], pods(a1=9), {}, None, id="of the incoming pod's release"),
        pytest.param(
            [spread(labelSelector={}, matchLabelKeys=["app"])], pods(a1=1), {}, Reason.SPREAD_SKEW, id="by keys alone"
        ),
        pytest.param(
            [spread()], pods(a1=1, b1=1), {"nodeSelector": TWO_ZONES}, None, id="zones where it may not go do not count"
        ),
        pytest.param(
            [spread(**IGNORED)],
            pods(a1=1, b1=1),
            {"nodeSelector": TWO_ZONES},
            Reason.SPREAD_SKEW,
            id="they do under nodeAffinityPolicy Ignore",
        ),
        pytest.param(
            [spread()],
            pods(a1=1, b1=1),
            {"affinity": builders.node_affinity(required=[builders.on_node("a1"), builders.on_node("b1")])},
            None,
            id="nor zones that its node affinity excludes",
        ),
        pytest.param([spread()], pods(a1=1, b1=1), {}, Reason.SPREAD_SKEW, id="tainted nodes count"),
        pytest.param([spread(**HONORED)], pods(a1=1, b1=1), {}, None, id="not under nodeTaintsPolicy Honor"),
        pytest.param(
            [spread(**HONORED)],
            pods(a1=1, b1=1),
            {"tolerations": TOLERANT},
            Reason.SPREAD_SKEW,
            id="those it tolerates",
        ),
        pytest.param([spread(minDomains=3)], pods(a1=1, b1=1, c1=1), {**IGNORED}, Reason.SPREAD_DOMAINS, id="the pin"),
        pytest.param([spread(minDomains=3, **IGNORED)], pods(a1=1, b1=1, c1=1), {}, None, id="as many zones as asked"),
        pytest.param(
            [spread(minDomains=4, **IGNORED)], pods(a1=1, b1=1, c1=1), {}, Reason.SPREAD_DOMAINS, id="too few zones"
        ),
        pytest.param([spread(minDomains=4)], [], {}, None, id="too few zones, and nobody there"),
        pytest.param([spread(minDomains=3)], pods(a2=1, b1=1, c1=1), {}, None, id="with the pin nobody is there"),
        pytest.param([spread("disk")], [], {}, Reason.TOPOLOGY_LABEL_MISSING, id="the node has no such label"),
        pytest.param(
            [spread(labelSelector={"matchExpressions": [{"key": "app", "operator": "In"}]})],
            [],
            {},
            Reason.SELECTOR_UNREADABLE,
            id="a selector that does not parse",
        ),
        pytest.param(
            [spread(labelSelector={"matchLabels": {"controller-uid": "1"}})],
            [],
            {},
            Reason.LABEL_NOT_KEPT,
            id="a label that is not kept",
        ),
        pytest.param([spread()], pods(gone=1), {}, Reason.NEIGHBOUR_ON_UNKNOWN_NODE, id="on a node that is not known"),
        pytest.param([spread(skew=2)], pods(gone=1), {}, None, id="on a node not known, and it would not matter"),
    ],
)
def test_a_hard_constraint(
    constraints: list[Object], there: list[Object], spec: dict[str, Any], cause: Reason | None
) -> None:
    """The pods here and the incoming pod, less the pods of the smallest domain: no more than maxSkew."""
    options = {key: value for key, value in spec.items() if key not in IGNORED}
    assert getattr(status(constraints, there, **options), "cause", None) is cause


def test_a_node_that_lacks_one_key_of_two_has_no_part() -> None:
    """Pods on it count for neither constraint, though it has the other's label."""
    nodes = (*NODES, builders.node("a3", labels={"zone": "a"}))
    constraints = [spread(), spread("host")]
    incoming_pod = {
        "metadata": {"namespace": "vms", "labels": {"app": "db"}},
        "spec": {"topologySpreadConstraints": constraints},
    }
    situation = Situation(nodes, pods(a3=3), {"vms": {}}, incoming_pod, "a1")
    assert PluginRunner(situation).pod_topology_spread() == Passed()
    assert not refusals(situation, pinned=False)


@pytest.mark.parametrize(
    ("expected", "cause"),
    [
        pytest.param(pods(a2=1), Reason.SPREAD_SKEW, id="here"),
        pytest.param(pods(b1=1, c1=1), None, id="elsewhere"),
        pytest.param(pods(b1=1, c1=1, a1=1), Reason.SPREAD_SKEW, id="everywhere"),
        pytest.param(pods(bare=1), None, id="where there is no zone"),
        pytest.param(pods(gone=1), Reason.NEIGHBOUR_ON_UNKNOWN_NODE, id="on a node that is not known"),
    ],
)
def test_a_pod_that_is_expected(expected: list[Object], cause: Reason | None) -> None:
    """It is taken to come where it would be in the way, and nowhere else."""
    assert getattr(status([spread()], expected=expected), "cause", None) is cause


def test_a_pod_that_is_leaving_does_not_count() -> None:
    """Unlike for affinity: the scheduler spreads over pods that will stay."""
    [leaving] = pods(a1=1)
    leaving["metadata"] = {**leaving["metadata"], "deletionTimestamp": "2026-01-02T03:04:05Z"}
    assert status([spread()], [leaving]) == Passed()


def test_a_pin_does_not_override_the_constraint() -> None:
    """The scheduler would bind a pinned pod here, with nothing to compare: its owner meant it otherwise."""
    incoming_pod = {
        "metadata": {"namespace": "vms", "labels": {"app": "db"}},
        "spec": {"topologySpreadConstraints": [spread()]},
    }
    situation = Situation(NODES, pods(a1=5), {"vms": {}}, incoming_pod, "a1")
    assert (refusals(situation, pinned=False), refusals(situation, pinned=True)) == (["spread"], [])
    assert isinstance(PluginRunner(situation).pod_topology_spread(), Rejected)


def test_too_many_nodes_to_look_at() -> None:
    """Past a bound of nodes it is not told where there are the fewest: one node more is too much."""
    incoming_pod = {
        "metadata": {"namespace": "vms", "labels": {"app": "db"}},
        "spec": {"topologySpreadConstraints": [spread()]},
    }
    judge = PluginRunner(Situation(NODES, pods(a1=1, b1=1, c1=1), {"vms": {}}, incoming_pod, "a1"))
    far = convert(builders.node("far"), Node)
    judge.nodes |= {f"far-{number}": far for number in range(1_000)}
    assert judge.pod_topology_spread() == Passed()
    enough = Budget()
    judge.pod_topology_spread(enough)
    assert judge.pod_topology_spread(Budget(enough.most - enough.left)) == Passed()
    judge.nodes["one-more"] = far
    told = judge.pod_topology_spread(Budget(enough.most - enough.left))
    assert isinstance(told, Unknown)
    assert told.cause is Reason.TOO_MANY_NEIGHBOURS


@pytest.mark.parametrize(
    ("constraints", "sentence"),
    [
        pytest.param(
            [spread()],
            (
                "3 pods of the pod's DoNotSchedule topology spread would be in the zone of node a1; "
                "another zone has 0, and maxSkew is 1"
            ),
            id="skew",
        ),
        pytest.param(
            [spread(minDomains=2, **HONORED)],
            (
                "2 pods of the pod's DoNotSchedule topology spread would be in the zone of node a1; "
                "a required node leaves one zone, and minDomains 2 then allows 1"
            ),
            id="domains",
        ),
    ],
)
def test_a_sentence_tells_the_numbers(constraints: list[Object], sentence: str) -> None:
    """How many there would be, how many there are elsewhere, how many there may be more."""
    told = status(constraints, pods(a1=1, a2=1, b1=2))
    assert isinstance(told, Rejected)
    assert told.why.sentence == sentence
