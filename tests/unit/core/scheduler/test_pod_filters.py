"""What a pod's rules find is found once for the pod, not once for each node; and anew when other pods are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import convert
from support.models.neighbour_judge import add, newcomer
from support.models.scheduler_model import REQUIRED, Object
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.pod_filters import PodFilters
from webhook.core.scheduler.state.label_selector import Scope, Selector
from webhook.core.scheduler.state.pod_index import Found, PodIndex
from webhook.core.scheduler.state.snapshot import ListedSnapshot
from webhook.core.scheduler.status import Status, Unknown

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
    """A crowd of these neighbours."""

    def __init__(self, pod_index: PodIndex) -> None:
        super().__init__((), NODES, {})
        self._neighbours = pod_index

    @property
    def pod_index(self) -> PodIndex:
        """As Crowd says."""
        return self._neighbours


def pod(node: str | None = None, apart: Sequence[Object] = (), **spec: Any) -> Object:
    """A pod labelled app=web."""
    metadata = {"namespace": "vms", "labels": {"app": "web"}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "affinity": {"podAntiAffinity": {REQUIRED: apart}}, **spec},
    }


def causes(filters: PodFilters, snapshot: ListedSnapshot) -> dict[str, Reason | None]:
    """What is said of each node."""
    rulings: dict[str, Status] = {name: filters.ruling(node, snapshot) for name, node in NODES.items()}
    return {name: getattr(ruling, "cause", None) for name, ruling in rulings.items()}


def test_pods_are_looked_for_once() -> None:
    """However many nodes are judged: once for each term and each constraint."""
    pod_index = Counting()
    add(pod_index, pod("n7"))
    filters = PodFilters(newcomer(pod(apart=[WEB], topologySpreadConstraints=[SPREAD])), Budget())
    assert causes(filters, Counted(pod_index)) == {**dict.fromkeys(NODES), "n7": Reason.POD_ANTI_AFFINITY}
    assert pod_index.asked == 2


def test_spread_is_not_looked_at_before_it_matters() -> None:
    """Where affinity refuses every node."""
    pod_index = Counting()
    for name in NODES:
        add(pod_index, pod(name))
    filters = PodFilters(newcomer(pod(apart=[WEB], topologySpreadConstraints=[SPREAD])), Budget())
    assert set(causes(filters, Counted(pod_index)).values()) == {Reason.POD_ANTI_AFFINITY}
    assert pod_index.asked == 1


def test_nothing_is_taken_from_what_pods_were() -> None:
    """When a pod came or went, and when others are asked, everything is looked for again."""
    pod_index = Counting()
    filters, snapshot = PodFilters(newcomer(pod(apart=[WEB])), Budget()), Counted(pod_index)
    assert set(causes(filters, snapshot).values()) == {None}
    there = add(pod_index, pod("n7"))
    assert causes(filters, snapshot)["n7"] is Reason.POD_ANTI_AFFINITY
    pod_index.remove(there)
    assert causes(filters, snapshot)["n7"] is None
    other = Counting()
    add(other, pod("n8"))
    assert causes(filters, Counted(other))["n8"] is Reason.POD_ANTI_AFFINITY


def test_the_budget_is_one_for_all_rules() -> None:
    """What the first rule takes the second has not."""

    def asked(steps: Budget, **rules: Any) -> Reason | None:
        pod_index = Counting()
        for name in list(NODES)[:30]:
            add(pod_index, pod(name))
        return causes(PodFilters(newcomer(pod(**rules)), steps), Counted(pod_index))["n35"]

    first, second = Budget(), Budget()
    assert asked(first, apart=[WEB]) is None
    assert asked(second, topologySpreadConstraints=[SPREAD]) is None
    enough_for_one = Budget(max(budget.most - budget.left for budget in (first, second)))
    assert asked(enough_for_one, apart=[WEB], topologySpreadConstraints=[SPREAD]) is Reason.TOO_MANY_NEIGHBOURS
