from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.fakes.views import MISSING, ViewWithGaps, cluster
from support.objects.builders import node, node_affinity, on_node, share_manager_pod, vm_pod
from support.objects.builders_kubevirt import virtual_machine_instance

from webhook.core import refs
from webhook.core.api.pod import Pod
from webhook.core.placement.shortlist import _spread, pick
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.view import ClusterView, NoObject, ObjectRef, ObjectT
from webhook.objects.cluster import Cluster

Object = dict[str, Any]
LIST, LOOKED_AT = 64, 160
POD = convert(share_manager_pod("h", phase=None), Pod)
NAMES = [f"m{i:04}" for i in range(1000)]
WHOLE = cluster(*map(node, NAMES))
SOFT = ["old=:PreferNoSchedule"]
HARD = ["old=:NoSchedule"]


class Counting(ViewWithGaps):
    """A view that remembers which nodes it was asked about."""

    def __init__(self, whole: Cluster) -> None:
        super().__init__(whole, {})
        self.asked: set[str] = set()

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """As ClusterView says."""
        self.asked.add(ref.name)
        return super().get(ref)


def picked(
    view: ClusterView = WHOLE,
    *,
    seed: str = "h",
    wished: Sequence[str] = ("m0001",),
    least_taints: int = 0,
    pod: Pod = POD,
) -> tuple[str, ...]:
    """The list for a share-manager pod that is drawn to these nodes."""
    cycle = CycleState(pod, "longhorn-system", view.snapshot())
    return pick(cycle, wished, view, seed=seed, least_taints=least_taints)


def test_a_list_is_spread_over_the_cluster() -> None:
    """No stretch of the nodes is left out, in the order in which they are known: a rack's are often made together."""
    places = sorted(NAMES.index(name) for name in picked())
    gaps = [after - before for before, after in itertools.pairwise(places)]
    even = len(NAMES) / LIST
    assert max(gaps) < 3 * even
    assert places[0] < 3 * even
    assert places[-1] > len(NAMES) - 3 * even


@pytest.mark.slow
def test_a_volume_has_the_same_list_each_time_and_most_volumes_one_of_their_own() -> None:
    """A second admission finds what the first one wrote; and no few nodes are what every volume has to choose from."""
    lists = [picked(seed=f"pvc-{i}") for i in range(40)]
    assert lists == [picked(seed=f"pvc-{i}") for i in range(40)]
    assert len(set(lists)) > 30


@given(st.integers(101, 3000), st.text(max_size=20))
def test_what_is_looked_at_is_always_another_node(many: int, seed: str) -> None:
    """However many nodes there are, and whatever the volume is called."""
    looked_at = list(_spread(list(map(str, range(many))), seed))
    assert len(looked_at) == len(set(looked_at)) == min(many, LOOKED_AT)


def test_a_list_begins_with_the_preferred_nodes_and_names_each_node_once() -> None:
    """The best node first."""
    found = picked(wished=("m0500", "m0001"))
    assert found[:2] == ("m0500", "m0001")
    assert len(set(found)) == len(found) == LIST


def test_nothing_is_read_for_a_list() -> None:
    """A node that no cache has, or that could not be read, is left out."""
    lost = {refs.node(name): MISSING for name in NAMES[2::2]}
    lost |= {refs.node(name): NoObject.UNAVAILABLE for name in NAMES[3::4]}
    found = picked(ViewWithGaps(WHOLE, lost))
    assert len(found) == 1 + LOOKED_AT // 4
    assert not set(map(refs.node, found)) & set(lost)


def test_few_nodes_are_looked_at() -> None:
    """In a large cluster whose nodes are all unfit the search ends, and there is no list."""
    view = Counting(cluster(*(node(name, taints=HARD if name != "m0001" else []) for name in NAMES)))
    assert picked(view) == ()
    assert len(view.asked) <= LOOKED_AT


@pytest.mark.parametrize(
    ("nodes", "unusable", "listed"),
    [
        pytest.param(300, 149, LIST, id="most are usable"),
        pytest.param(300, 150, 0, id="half of them are"),
        pytest.param(200, 99, LIST, id="as many as are looked at as a sample"),
        pytest.param(200, 100, 0, id="so few that each is scored"),
    ],
)
@pytest.mark.parametrize("how", [{"ready": "False"}, {"cordoned": True}], ids=["NotReady", "cordoned"])
def test_while_many_nodes_are_unusable_there_is_no_list(
    nodes: int, unusable: int, listed: int, how: dict[str, Any]
) -> None:
    """A pod that waits keeps its list: it must not be of the few nodes that happened to be there."""
    unfit = (node(name, **how) for name in NAMES[nodes - unusable : nodes])
    assert len(picked(cluster(*map(node, NAMES[: nodes - unusable]), *unfit))) == listed


def listed_pods(count: int, cpu: str) -> list[Object]:
    """Pods that wait, each on a list of its own, with the VirtualMachineInstances that own them."""
    own = node_affinity(required=map(on_node, ("m0001", "m0002")), preferred={"m0001": 100})
    containers = [{"name": "x", "resources": {"requests": {"cpu": cpu}}}]
    names = [f"vm-{index}" for index in range(count)]
    pods = [vm_pod(name, affinity=own, containers=containers, decided="preferred") for name in names]
    return [*pods, *map(virtual_machine_instance, names)]


@pytest.mark.parametrize(
    ("waiting", "cpu", "listed"),
    [
        pytest.param(0, "1", LIST, id="nobody waits"),
        pytest.param(63, "1", LIST, id="a place is left for it"),
        pytest.param(64, "1", 0, id="none is left"),
        pytest.param(31, "2", LIST, id="each takes two places"),
        pytest.param(32, "2", 0, id="each takes two places, and none is left"),
    ],
)
def test_a_list_has_room_for_all_that_are_on_their_way(waiting: int, cpu: str, listed: int) -> None:
    """It is a hard requirement: whichever nodes the others come to run on, one of the list is left for this pod."""
    nodes = [node(name, allocatable={"cpu": "1", "pods": "10"}) for name in NAMES[:200]]
    nodes[1]["status"]["allocatable"]["cpu"] = "0"
    view = cluster(*nodes, *listed_pods(waiting, cpu))
    pod = convert(vm_pod("new", containers=[{"name": "x", "resources": {"requests": {"cpu": "1"}}}]), Pod)
    assert len(picked(view, pod=pod, wished=("m0000",))) == listed


def test_a_list_of_nodes_that_are_avoided_as_much() -> None:
    """With a reluctance to keep, only nodes with as many soft taints are on the list; the preferred one in any case."""
    soft = NAMES[::4]
    view = cluster(*(node(name, taints=SOFT if name in soft else []) for name in NAMES))
    found = picked(view, least_taints=1)
    assert len(found) > ceil(LOOKED_AT / 8)
    assert set(found) <= {"m0001", *soft}
    assert not set(picked(view)) <= {"m0001", *soft}
