"""A plugin looks for pods once for the incoming pod, not once for each node; and again when other pods are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import convert
from support.models.plugin_runner import add, incoming_pod
from support.models.scheduler_model import REQUIRED, Object
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.matching.label_selector import Scope, Selector
from webhook.core.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_index import PodIndex
from webhook.core.scheduler.state.snapshot import ListedSnapshot
from webhook.core.scheduler.status import Passed, Status, Unknown

HOST = "kubernetes.io/hostname"
WEB = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
SPREAD = {**WEB, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
NODES = {f"n{i}": convert(builders.node(f"n{i}"), Node) for i in range(40)}


class Counting(PodIndex):
    """It counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def find(self, scopes: Sequence[Scope], selector: Selector, *, rule: str, budget: Budget) -> Found | Unknown:
        """As PodIndex."""
        self.asked += 1
        return super().find(scopes, selector, rule=rule, budget=budget)


class Counted(ListedSnapshot):
    """A Snapshot with this index of pods."""

    def __init__(self, pod_index: PodIndex) -> None:
        super().__init__((), NODES, {})
        self._pod_index = pod_index

    @property
    def pod_index(self) -> PodIndex:
        """The index that was given."""
        return self._pod_index


def pod(node: str | None = None, apart: Sequence[Object] = (), **spec: Any) -> Object:
    """A pod labelled app=web."""
    metadata = {"namespace": "vms", "labels": {"app": "web"}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "affinity": {"podAntiAffinity": {REQUIRED: apart}}, **spec},
    }


def causes(cycle: CycleState) -> dict[str, Reason | None]:
    """Why each node is rejected: PodTopologySpread is asked if InterPodAffinity accepts the node, as in placement."""
    found: dict[str, Reason | None] = {}
    for name, node in NODES.items():
        status: Status = inter_pod_affinity.filter_node(cycle, NodeInfo(node))
        if isinstance(status, Passed):
            status = pod_topology_spread.filter_node(cycle, NodeInfo(node))
        found[name] = None if isinstance(status, Passed) else status.cause
    return found


def cycle_of(pod: Object, pod_index: PodIndex, budget: Budget | None = None) -> CycleState:
    """Return the state of this pod, beside these other pods."""
    return CycleState(incoming_pod(pod), Counted(pod_index), budget)


def test_pods_are_looked_for_once() -> None:
    """However many nodes are judged: once for each term and each constraint."""
    pod_index = Counting()
    add(pod_index, pod("n7"))
    cycle = cycle_of(pod(apart=[WEB], topologySpreadConstraints=[SPREAD]), pod_index)
    assert causes(cycle) == {**dict.fromkeys(NODES), "n7": Reason.POD_ANTI_AFFINITY}
    assert pod_index.asked == 2


def test_spread_is_not_looked_at_before_it_matters() -> None:
    """Where affinity refuses every node."""
    pod_index = Counting()
    for name in NODES:
        add(pod_index, pod(name))
    cycle = cycle_of(pod(apart=[WEB], topologySpreadConstraints=[SPREAD]), pod_index)
    assert set(causes(cycle).values()) == {Reason.POD_ANTI_AFFINITY}
    assert pod_index.asked == 1


def test_nothing_is_taken_from_what_pods_were() -> None:
    """When a pod came or went, and when others are asked, everything is looked for again."""
    pod_index = Counting()
    cycle = cycle_of(pod(apart=[WEB]), pod_index)
    assert set(causes(cycle).values()) == {None}
    there = add(pod_index, pod("n7"))
    assert causes(cycle)["n7"] is Reason.POD_ANTI_AFFINITY
    pod_index.remove(there)
    assert causes(cycle)["n7"] is None
    other = Counting()
    add(other, pod("n8"))
    assert causes(cycle_of(pod(apart=[WEB]), other))["n8"] is Reason.POD_ANTI_AFFINITY


def test_the_budget_is_one_for_all_rules() -> None:
    """What the first rule takes the second has not."""

    def asked(steps: Budget, **rules: Any) -> Reason | None:
        pod_index = Counting()
        for name in list(NODES)[:30]:
            add(pod_index, pod(name))
        return causes(cycle_of(pod(**rules), pod_index, steps))["n35"]

    first, second = Budget(), Budget()
    assert asked(first, apart=[WEB]) is None
    assert asked(second, topologySpreadConstraints=[SPREAD]) is None
    enough_for_one = Budget(max(budget.most - budget.left for budget in (first, second)))
    assert asked(enough_for_one, apart=[WEB], topologySpreadConstraints=[SPREAD]) is Reason.TOO_MANY_NEIGHBOURS
