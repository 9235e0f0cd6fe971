"""The pods of files and lists, counted once."""

from __future__ import annotations

from typing import Any

from msgspec import convert
from support.objects import builders, builders_pods

from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.scheduler.cache import NodeInfo

NODES = {
    name: convert(builders.node(name, allocatable={"cpu": "4", "pods": "110"}), Node) for name in ("node-a", "node-b")
}
REQUESTS = {"cpu": "1"}


def snapshot(*pods: dict[str, Any], nodes_max: int = 9) -> ListedSnapshot:
    """These pods on two nodes of four CPUs; by their record they count on `nodes_max` nodes."""
    listed = [convert(pod, Pod) for pod in pods]
    return ListedSnapshot(listed, NODES, {"node-a": {"driver": 3}}, nodes_max=lambda _: nodes_max)


def taken(node: NodeInfo) -> tuple[int, int, int]:
    """Pods, milli-CPU, and how many of the pods are on the way."""
    return node.requested.pods, node.requested.of("cpu"), node.on_the_way.pods


def test_one_unbound_pod_of_a_vm_counts() -> None:
    """And it counts on as many nodes as its VM can have share-managers."""
    liking = builders.node_affinity(preferred=dict.fromkeys(NODES, 100))
    pods = [builders.vm_pod(name, vm="db01", affinity=liking) for name in ("a", "b")]
    there = snapshot(*pods, nodes_max=2)
    assert [taken(there.node_info(name))[0] for name in NODES] == [1, 1]
    there = snapshot(*pods, nodes_max=1)
    assert [taken(there.node_info(name))[0] for name in NODES] == [1, 0]


def test_pods_that_are_left_out_take_no_room() -> None:
    """Until others are: each time all are counted but those."""
    there = snapshot(*(builders_pods.pod(name, node="node-a", requests=REQUESTS) for name in ("p", "q", "r")))
    there.leave_out(lambda pod: pod.metadata.name != "p")
    assert taken(there.node_info("node-a")) == (1, 1000, 0)
    there.leave_out(lambda pod: pod.metadata.name == "p")
    assert taken(there.node_info("node-a")) == (2, 2000, 0)
