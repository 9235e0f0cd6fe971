"""A plugin reads the incoming pod's rules once, however many nodes it filters; of a node it sees the pods of now."""

from __future__ import annotations

from typing import Any

from msgspec import convert
from support.models.plugin_runner import add, cycle_of, snapshot
from support.models.scheduler_model import REQUIRED, Object
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins import inter_pod_affinity
from webhook.core.scheduler.state.cache import SchedulerCache

WEB = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
NODES = {f"n{i}": convert(builders.node(f"n{i}"), Node) for i in range(4)}


def pod(node: str | None = None, apart: Any = ()) -> Object:
    """A pod labelled app=web."""
    metadata = {"namespace": "vms", "labels": {"app": "web"}}
    return {"metadata": metadata, "spec": {"nodeName": node, "affinity": {"podAntiAffinity": {REQUIRED: apart}}}}


def causes(cycle: CycleState, scheduler_cache: SchedulerCache) -> dict[str, Reason]:
    """Why nodes are rejected."""
    nodes = snapshot(NODES, scheduler_cache)
    found = {name: inter_pod_affinity.filter_node(cycle, nodes.node_info(name)) for name in NODES}
    return {name: why.reason for name, why in found.items() if why}


def test_what_is_read_of_the_incoming_pod_is_read_once() -> None:
    """Each plugin has a state of its own."""
    asked: list[CycleState] = []

    def read(incoming: CycleState) -> int:
        asked.append(incoming)
        return len(asked)

    cycle = cycle_of(pod(), snapshot(NODES, SchedulerCache()))
    assert [cycle.state(read), cycle.state(read), cycle.state(lambda _: "other")] == [1, 1, "other"]
    assert asked == [cycle]


def test_pods_come_and_go_meanwhile() -> None:
    """Nothing is taken from what pods were."""
    pods = SchedulerCache()
    cycle = cycle_of(pod(apart=[WEB]), snapshot(NODES, pods))
    assert causes(cycle, pods) == {}
    there = add(pods, pod("n2"))
    assert causes(cycle, pods) == {"n2": Reason.POD_ANTI_AFFINITY}
    pods.remove(there)
    assert causes(cycle, pods) == {}
