"""What pods request of nodes, while they are added and removed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.pod_info import PodHandle, PodInfo, PodNode
from webhook.core.scheduler.state.pod_requests import HostPort, Usage

PORT = HostPort("TCP", 80, "0.0.0.0")  # noqa: S104 - as the scheduler writes it
HAS = {"pods": 10, "cpu": 1000, "memory": 2**30}
SMALL = Usage((("cpu", 100), ("memory", 2**20)), (PORT,))


def pod_info(node: str = "n1", **described: Any) -> PodInfo:
    """A pod that requests a little."""
    usage, labels = described.pop("usage", SMALL), described.pop("labels", None)
    return PodInfo("vms", usage, labels, None, PodNode(node=node, **{"bound": True, **described}))


def n1(scheduler_cache: SchedulerCache) -> NodeInfo:
    """The node, which has one CPU."""
    return scheduler_cache.node_info("n1", HAS, {})


def test_a_node_without_pods_has_no_requests() -> None:
    """No pod is queued for it, and a question stores nothing."""
    scheduler_cache = SchedulerCache()
    assert (n1(scheduler_cache).requested.pods, n1(scheduler_cache).queued, n1(scheduler_cache).waited_for) == (
        0,
        0,
        False,
    )
    scheduler_cache.add(pod_info("n2"))
    assert n1(scheduler_cache).requested.pods == 0


def test_pods_come_and_go() -> None:
    """Each counts on its node, in the requests and in the index, until it is removed."""
    scheduler_cache = SchedulerCache()
    first, second = scheduler_cache.add(pod_info(labels={"app": "db"})), scheduler_cache.add(pod_info())
    load = n1(scheduler_cache).requested
    assert (load.pods, load.amounts, load.ports) == (2, {"cpu": 200, "memory": 2**21}, {PORT: 2})
    scheduler_cache.remove(first)
    load = n1(scheduler_cache).requested
    assert (load.pods, load.amounts, load.ports) == (1, {"cpu": 100, "memory": 2**20}, {PORT: 1})
    assert n1(scheduler_cache).pods == [second]
    scheduler_cache.remove(second)
    assert not scheduler_cache._nodes, "of a node that may be gone nothing is left"


def test_a_bound_pod_is_not_queued() -> None:
    """Whatever the other fields say."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(pod_info(bound=True, queued=True, pinned=True, shortlisted=True, assumed=True))
    found = n1(scheduler_cache)
    assert (found.requested.pods, found.queued, found.waited_for, found.requested_by_queued.pods) == (1, 0, False, 0)
    assert not scheduler_cache.shortlisted(assumed=True)


def test_an_expected_pod_counts_on_its_node() -> None:
    """In the requests, and as a pod that is queued, pinned, limited to a short list, and assumed."""
    scheduler_cache = SchedulerCache()
    bound = scheduler_cache.add(pod_info())
    drawn = scheduler_cache.add(pod_info(bound=False, queued=True, pinned=True, shortlisted=True, assumed=True))
    found = n1(scheduler_cache)
    assert (found.requested.pods, found.requested.amounts["cpu"]) == (2, 200)
    assert (found.queued, found.waited_for, found.requested_by_queued.amounts) == (1, True, dict(SMALL.requests))
    assert (scheduler_cache.shortlisted(assumed=True), scheduler_cache.shortlisted(assumed=False)) == ({SMALL: 1}, {})
    scheduler_cache.remove(bound)
    assert n1(scheduler_cache).requested.pods == 1
    scheduler_cache.remove(drawn)
    assert (n1(scheduler_cache).requested.pods, scheduler_cache.shortlisted(assumed=True), scheduler_cache._nodes) == (
        0,
        {},
        {},
    )


def test_several_pods_of_one_shape_are_counted() -> None:
    """Each is added, and each is removed."""
    scheduler_cache = SchedulerCache()
    waiting = [scheduler_cache.add(pod_info(bound=False, pinned=True, shortlisted=True)) for _ in range(3)]
    assert (n1(scheduler_cache).requested.pods, scheduler_cache.shortlisted(assumed=False)) == (3, {SMALL: 3})
    scheduler_cache.remove(waiting.pop())
    assert (n1(scheduler_cache).requested.pods, scheduler_cache.shortlisted(assumed=False)) == (2, {SMALL: 2})
    assert n1(scheduler_cache).waited_for


def test_a_pod_that_is_larger_than_its_node_takes_nothing_of_it() -> None:
    """A pod of a DaemonSet or of a VM that is never bound there: no other pod has to wait for it."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(pod_info(usage=Usage((("cpu", 1001),)), bound=False, pinned=True))
    assert (n1(scheduler_cache).requested.pods, n1(scheduler_cache).waited_for) == (0, False)
    scheduler_cache.add(pod_info(usage=Usage((("cpu", 1000),)), bound=False, pinned=True))
    assert (n1(scheduler_cache).requested.pods, n1(scheduler_cache).waited_for) == (1, True)


def test_a_node_that_changes_holds_other_pods() -> None:
    """A pod that waits counts from when the node could hold it, and not after it can no more."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(pod_info())
    large = Usage((("cpu", 700),))
    waits = scheduler_cache.add(pod_info(usage=large, bound=False, queued=True, pinned=True))
    for cpu, found in ((500, (1, 0, False)), (1000, (2, 1, True)), (500, (1, 0, False)), (1000, (2, 1, True))):
        info = scheduler_cache.node_info("n1", {**HAS, "cpu": cpu}, None)
        assert (info.requested.pods, info.queued, info.waited_for) == found
    scheduler_cache.remove(waits)
    info = scheduler_cache.node_info("n1", {**HAS, "cpu": 500}, None)
    assert (info.requested.pods, info.requested_by_queued.pods, info.waited_for) == (1, 0, False)


def test_an_answer_does_not_add_the_pods_up_again() -> None:
    """However many pods wait for a node, it costs the same."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(pod_info(bound=False, queued=True))
    before = n1(scheduler_cache)
    scheduler_cache.add(pod_info(bound=False, queued=True))
    after = scheduler_cache.node_info("n1", dict(HAS), None)
    assert (after.requested, after.requested_by_queued) == (before.requested, before.requested_by_queued)
    assert (before.queued, after.queued, after.requested.pods) == (1, 2, 2)


def coming(scheduler_cache: SchedulerCache, *, is_vm: bool = True) -> PodHandle:
    """A watch shows a queued pod."""
    return scheduler_cache.add(pod_info(bound=False, queued=True, is_vm=is_vm))


def answered(scheduler_cache: SchedulerCache) -> None:
    """An answer is given, and a watch shows its pod, which is bound at once."""
    scheduler_cache.confirm(scheduler_cache.add(pod_info(bound=False, queued=True, is_vm=True, assumed=True)))


def common_start(scheduler_cache: SchedulerCache) -> tuple[bool, bool]:
    """Whether VMs start together, and whether all replicas know of it."""
    found = n1(scheduler_cache)
    return found.starting_together, found.known_to_all


def test_several_queued_vms_start_together() -> None:
    """All replicas know of the start, and of its end, once a watch shows a pod that was answered for later."""
    scheduler_cache = SchedulerCache()
    early = scheduler_cache.add(pod_info("n2", bound=False, queued=True, is_vm=True, assumed=True))
    vms = [coming(scheduler_cache)]
    assert common_start(scheduler_cache) == (False, False)
    vms.append(coming(scheduler_cache))
    assert common_start(scheduler_cache) == (True, False)
    scheduler_cache.confirm(early)
    assert common_start(scheduler_cache) == (True, False), "that one was answered for before"
    answered(scheduler_cache)
    assert common_start(scheduler_cache) == (True, True)
    scheduler_cache.add(pod_info())
    for vm in vms:
        scheduler_cache.remove(vm)
    assert common_start(scheduler_cache) == (True, False)
    again = coming(scheduler_cache)
    assert common_start(scheduler_cache) == (True, False), "one that comes in between may not be known to all"
    scheduler_cache.remove(again)
    answered(scheduler_cache)
    assert common_start(scheduler_cache) == (False, False)


def test_after_a_common_start_single_vms_are_no_common_start() -> None:
    """Once all replicas know that none is queued any more. Several queued VMs start together again."""
    scheduler_cache = SchedulerCache()
    scheduler_cache.add(pod_info())
    for vm in [coming(scheduler_cache) for _ in range(2)]:
        scheduler_cache.remove(vm)
    found = []
    for _ in range(3):
        found.append(n1(scheduler_cache).starting_together)
        answered(scheduler_cache)
        scheduler_cache.remove(coming(scheduler_cache))
    assert found == [True, False, False]


def test_other_pods_do_not_start_together() -> None:
    """A DaemonSet's pods are queued for each new node at once, and no replica has steered them there."""
    scheduler_cache = SchedulerCache()
    for _ in range(3):
        coming(scheduler_cache, is_vm=False)
    assert common_start(scheduler_cache) == (False, False)
    assert n1(scheduler_cache).queued == 3


def test_terms_over_other_topologies_come_and_go() -> None:
    """Equal terms of several pods are one; nothing is left of a namespace without any."""
    selector = LabelSelector(match_labels={"app": "db"})
    wide = [PodAffinityTerm(topology_key=key, label_selector=selector) for key in ("zone", "kubernetes.io/hostname")]
    scheduler_cache = SchedulerCache()
    existing = scheduler_cache.existing_terms
    one, other = (scheduler_cache.add(replace(pod_info(node), anti_affinity=wide)) for node in ("n1", "n2"))
    assert one.anti_affinity is other.anti_affinity
    about = [(term.topology_key, set(places)) for term, places in existing.about("vms", {"app": "db"})]
    assert about == [("zone", {("n1", True), ("n2", True)})]
    assert (existing.count("vms"), existing.count("other")) == (1, 0)
    region = [PodAffinityTerm(topology_key="region", label_selector=selector)]
    for again in (True, False):  # of two pods on a node with one term, the term of the other stays
        third = scheduler_cache.add(replace(pod_info("n1"), anti_affinity=region if again else wide))
        assert existing.count("vms") == 1 + again
        scheduler_cache.remove(third)
        assert existing.count("vms") == 1
    scheduler_cache.remove(one)
    assert existing.count("vms") == 1
    scheduler_cache.remove(other)
    assert not existing._namespaces
