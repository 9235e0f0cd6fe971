"""What one admission looks at is bounded by steps, whatever is in the cluster and however its rules are written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.models.plugin_runner import PluginRunner, add
from support.models.scheduler_model import REQUIRED, Object, Situation
from support.objects import builders
from support.strategies.inter_pod_situations import Maker, Setting

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget, OutOfSteps
from webhook.core.scheduler.state.pod_info import Presence
from webhook.core.scheduler.status import Status, Unknown

MANY = 2_000
STEPS = 500
WEB = {"matchLabels": {"app": "web"}}
HOST = "kubernetes.io/hostname"


def term(selector: Object = WEB, **fields: Any) -> Object:
    """A PodAffinityTerm about pods on one node."""
    return {"topologyKey": HOST, "labelSelector": selector, **fields}


def pod(node: str | None = None, labels: Object | None = None, apart: Any = (), near: Any = (), **spec: Any) -> Object:
    """A pod labelled app=web, on a node or not."""
    affinity = {"podAntiAffinity": {REQUIRED: list(apart)}, "podAffinity": {REQUIRED: list(near)}}
    namespace = spec.pop("namespace", "vms")
    metadata = {"namespace": namespace, "labels": {"app": "web", **(labels or {})}}
    return {"metadata": metadata, "spec": {"nodeName": node, "affinity": affinity, **spec}}


def spread(**fields: Any) -> Object:
    """A hard topology spread constraint."""
    return {**term(), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **fields}


def others_than(vm: int) -> Object:
    """A selector of its own of each VM."""
    return {**WEB, "matchExpressions": [{"key": "vm", "operator": "NotIn", "values": [str(vm)]}]}


def exists(key: str) -> Object:
    """A requirement without a value by which a term could be filed."""
    return {"key": key, "operator": "Exists"}


APART, NEAR, ANYWHERE = pod(apart=[term()]), pod(near=[term()]), pod(apart=[term(namespaceSelector={})])
SPREAD = pod(topologySpreadConstraints=[spread()])
TAINTED = pod(topologySpreadConstraints=[spread(nodeTaintsPolicy="Honor")], tolerations=[{"operator": "Exists"}] * 9)
NAMED = pod(topologySpreadConstraints=[spread()])
NAMED["spec"]["affinity"] |= builders.node_affinity(required=[builders.on_node(f"n{i}") for i in range(50)])

SHAPES: dict[str, tuple[Object, list[Object]]] = {
    "label sets": (APART, [pod(f"n{i}", {"vm": str(i)}) for i in range(MANY)]),
    "label sets that do not match": (pod(apart=[term({})]), [pod(f"n{i}", {"vm": str(i)}) for i in range(MANY)]),
    "nodes of one label set": (APART, [pod(f"n{i}") for i in range(MANY)]),
    "nodes of several pods with the same labels": (APART, [pod(f"n{i}", {"vm": str(i // 3)}) for i in range(MANY)]),
    "label keys": (APART, [pod(f"n{i}", {f"vm-{i}": ""}) for i in range(MANY)]),
    "namespaces": (ANYWHERE, [pod(f"n{i}", namespace=f"vms-{i}") for i in range(MANY)]),
    "terms": (pod(), [pod(f"n{i}", {"vm": str(i)}, [term(others_than(i))]) for i in range(MANY)]),
    "terms that do not match": (
        pod(labels={"vm": "none"}),
        [pod(f"n{i}", apart=[term({**WEB, "matchExpressions": [exists(f"vm-{i}")]})]) for i in range(MANY)],
    ),
    "topology keys": (
        pod(),
        [pod(f"n{i}", apart=[{**term(), "topologyKey": f"key-{i}"}]) for i in range(MANY)],
    ),
    "terms of the pod": (pod(apart=[term({"matchLabels": {"app": f"web-{i}"}}) for i in range(50)]), [pod("n0")]),
    "nodes of a term": (pod(), [pod(f"n{i}", apart=[term()]) for i in range(MANY)]),
    "near": (NEAR, [pod(f"n{i}") for i in range(MANY)]),
    "a spread": (SPREAD, [pod(f"n{i}") for i in range(MANY)]),
    "a spread of few": (SPREAD, [pod("n0")]),
    "a spread, taints honored": (TAINTED, [pod(f"n{i}") for i in range(MANY // 40)]),
    "a spread, many names": (NAMED, [pod(f"n{i}") for i in range(MANY // 40)]),
}
NODES = [builders.node(f"n{i}", labels={HOST: f"h{i}"}, taints=["slow:PreferNoSchedule"] * 9) for i in range(MANY)]
BY_NAME = {node["metadata"]["name"]: convert(node, Node) for node in NODES}


def runner(incoming_pod: Object, there: list[Object]) -> PluginRunner:
    """Of many nodes."""
    made = PluginRunner(Situation(NODES[:1], there, {}, incoming_pod, "n0"))
    made.nodes = BY_NAME
    return made


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many instructions core executes meanwhile, in the one number that the list has."""
    done = [0]

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if "/webhook/core/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        done[0] += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield done
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("most", [STEPS, 20 * STEPS])
@pytest.mark.parametrize(("incoming_pod", "there"), SHAPES.values(), ids=SHAPES)
def test_the_work_is_bounded_by_the_steps(incoming_pod: Object, there: list[Object], most: int) -> None:
    """Some twelve instructions a step, and those that grow with the pod: no more, however much there is to look at."""
    asked = runner(incoming_pod, there)
    budgets = Budget(most), Budget(most)
    with counted() as instructions:
        statuses = asked.inter_pod_affinity(budgets[0]), asked.pod_topology_spread(budgets[1])
    taken = sum(budget.most - budget.left for budget in budgets)
    own_terms = sum(len(terms[REQUIRED]) for terms in incoming_pod["spec"]["affinity"].values() if REQUIRED in terms)
    assert instructions[0] <= 12 * taken + 2_000 * (1 + own_terms)
    gave_up = [each for each in statuses if isinstance(each, Unknown)]
    assert all(each.cause is Reason.TOO_MANY_NEIGHBOURS for each in gave_up)
    assert all(f"(at most {most} steps)" in each.why.sentence for each in gave_up)
    assert gave_up or most > STEPS


@given(random=st.randoms(use_true_random=False), steps=st.integers(0, 1_500))
def test_a_smaller_budget_changes_no_answer(random: Random, steps: int) -> None:
    """With fewer steps it is the same, or not decided: they were too few for a rule, perhaps the one that refuses."""
    maker = Maker(random, Setting())
    situation = maker.situation()
    asked = PluginRunner(situation)
    for pod_there in situation.pods:
        if maker.odds(20):
            add(asked.pod_index, pod_there, Presence.EXPECTED)
    for rule in (asked.inter_pod_affinity, asked.pod_topology_spread):
        few = rule(Budget(steps))
        if not isinstance(few, Unknown):
            assert few == rule()


@pytest.mark.parametrize(
    ("incoming_pod", "rule", "cause"),
    [
        pytest.param(NEAR, PluginRunner.inter_pod_affinity, None, id="affinity"),
        pytest.param(APART, PluginRunner.inter_pod_affinity, Reason.POD_ANTI_AFFINITY, id="anti-affinity"),
        pytest.param(
            pod(), PluginRunner.inter_pod_affinity, Reason.REPELLED, id="anti-affinity of a pod that is there"
        ),
        pytest.param(SPREAD, PluginRunner.pod_topology_spread, Reason.SPREAD_SKEW, id="spread"),
        pytest.param(TAINTED, PluginRunner.pod_topology_spread, Reason.SPREAD_SKEW, id="spread, taints honored"),
        pytest.param(NAMED, PluginRunner.pod_topology_spread, Reason.SPREAD_SKEW, id="spread over nodes by name"),
    ],
)
def test_from_too_few_steps_to_enough(
    incoming_pod: Object, rule: Callable[[PluginRunner, Budget], Status], cause: Reason | None
) -> None:
    """Wherever the steps end on the way, it is said; with enough of them it is decided."""
    there = pod("n0", apart=[term()] if cause is Reason.REPELLED else ())
    decided = []
    for steps in (*range(700), *range(700, 8_000, 17)):
        asked = PluginRunner(Situation(NODES[:5], [there], {}, incoming_pod, "n0"))
        decided.append(getattr(rule(asked, Budget(steps)), "cause", None))
    first = decided.index(cause)
    assert set(decided[:first]) == {Reason.TOO_MANY_NEIGHBOURS}
    assert set(decided[first:]) == {cause}


def test_what_can_not_be_taken_is_left() -> None:
    """A caller that needs too much gets nothing, and the steps stay for something smaller."""
    budget = Budget(10)
    with pytest.raises(OutOfSteps):
        budget.take(11)
    budget.take(10)
    with pytest.raises(OutOfSteps):
        budget.take(1)


@pytest.mark.parametrize(("steps", "candidates"), [(0, 32), (249, 32), (250, 33), (30_500, 154)])
def test_candidates_share_the_budget(steps: int, candidates: int) -> None:
    """What was not used for rules is there for a longer look, and a few may always be judged."""
    budget = Budget(steps)
    assert sum(budget.take_candidate() for _ in range(1_000)) == candidates
