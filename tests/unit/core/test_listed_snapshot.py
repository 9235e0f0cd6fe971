"""The pods of files and lists, counted once."""

from __future__ import annotations

from typing import Any

import pytest
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


@pytest.mark.parametrize(
    ("pod", "counted"),
    [
        pytest.param({"node": "node-a"}, (1, 1000, 0), id="bound"),
        pytest.param({"node": "node-a", "deleting": True}, (1, 1000, 0), id="being deleted"),
        pytest.param({"node": "node-a", "phase": "Failed"}, (0, 0, 0), id="over"),
        pytest.param({"node": "node-b"}, (0, 0, 0), id="elsewhere"),
        pytest.param({}, (0, 0, 0), id="on its way to anywhere"),
        pytest.param({"pinned_to": ["node-a"]}, (1, 1000, 1), id="on its way here"),
        pytest.param({"pinned_to": ["node-a", "node-b"]}, (0, 0, 0), id="on its way to one of two"),
    ],
)
def test_a_pod_counts_where_it_is_or_can_only_go(pod: dict[str, Any], counted: tuple[int, int, int]) -> None:
    """As a cache of a live cluster counts it."""
    assert taken(snapshot(builders_pods.pod("p", requests=REQUESTS, **pod)).node_info("node-a")) == counted


def test_one_unbound_pod_of_a_vm_counts() -> None:
    """And it counts on as many nodes as its VM can have share-managers."""
    liking = builders.node_affinity(preferred=dict.fromkeys(NODES, 100))
    pods = [builders.vm_pod(name, vm="db01", affinity=liking) for name in ("a", "b")]
    there = snapshot(*pods, nodes_max=2)
    assert [taken(there.node_info(name))[0] for name in NODES] == [1, 1]
    there = snapshot(*pods, nodes_max=1)
    assert [taken(there.node_info(name))[0] for name in NODES] == [1, 0]


def test_a_pod_without_a_record_counts_on_no_node_that_it_names() -> None:
    """Anybody may create it. A pod that is bound, or nominated, counts."""
    stranger = builders_pods.pod("p", requests=REQUESTS, pinned_to=["node-a"])
    assert taken(snapshot(stranger, nodes_max=0).node_info("node-a")) == (0, 0, 0)
    stranger["status"]["nominatedNodeName"] = "node-a"
    assert taken(snapshot(stranger, nodes_max=0).node_info("node-a")) == (1, 1000, 0)


def test_a_node_has_its_allocatable_and_the_limits_of_its_drivers() -> None:
    """A node that is not listed has nothing."""
    there = snapshot()
    assert there.node_info("node-a").allocatable["cpu"] == 4000
    assert [there.node_info(name).csi_drivers for name in NODES] == [{"driver": 3}, None]
    assert there.node_info("node-z").allocatable == {}


def test_a_bound_pod_repels_and_an_instance_manager_is_known() -> None:
    """A pod without a namespace is in default."""
    away = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}
    stray = builders_pods.pod("p", node="node-a", labels={"longhorn.io/component": "instance-manager"}, away=[away])
    del stray["metadata"]["namespace"]
    there = snapshot(stray, builders_pods.pod("q", node="node-b", labels={"app": "web"}))
    (manager,) = there.node_info("node-a").labelled
    assert (manager.namespace, manager.labels) == ("default", {"longhorn.io/component": "instance-manager"})
    assert not there.node_info("node-b").labelled
    terms = there.scheduler_cache.existing_terms
    assert [(str(term), list(nodes)) for term, nodes in terms.near("default", {"app": "db"})] == [
        ("app=db", ["node-a"])
    ]
    assert not list(terms.near("vms", {"app": "db"}))


def test_pods_on_a_list_are_known() -> None:
    """They may run on few nodes only."""
    own = builders.node_affinity(required=map(builders.on_node, NODES), preferred={"node-a": 100})
    pod = builders_pods.pod("p", requests=REQUESTS)
    pod["spec"]["affinity"] = own
    there = snapshot(pod)
    assert sum(there.scheduler_cache.shortlisted.values()) == 1
    assert taken(there.node_info("node-a")) == (1, 1000, 1)


def test_pods_that_are_left_out_take_no_room() -> None:
    """Until others are: each time all are counted but those."""
    there = snapshot(*(builders_pods.pod(name, node="node-a", requests=REQUESTS) for name in ("p", "q", "r")))
    there.leave_out(lambda pod: pod.metadata.name != "p")
    assert taken(there.node_info("node-a")) == (1, 1000, 0)
    there.leave_out(lambda pod: pod.metadata.name == "p")
    assert taken(there.node_info("node-a")) == (2, 2000, 0)
