"""The cache of all pods counts the sum of its pods and assumed pods, whatever happened before."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.watching import RESOURCES
from support.objects import builders

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.core.scheduler.state.node_counts import as_dict
from webhook.core.scheduler.state.pod_info import PodInfo, PodNode, Presence
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.view import Kind
from webhook.kube.client.wire import Decoders
from webhook.kube.records.pods import DecodedPod, PodRecord, to_object
from webhook.kube.scheduler_cache.assumed_pods import Pods

Object = dict[str, Any]
RESOURCE: Final = RESOURCES[Kind.VIRT_LAUNCHER_POD]
NODES: Final = ("n0", "n1")
KEYS: Final = ("a", "b", "c")
PIN: Final = builders.node_affinity(required=[builders.on_node("n1")])
APART: Final = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def pod(name: str, *, cpu: str = "250m", labels: Mapping[str, str] | None = None, **described: Any) -> Object:
    """A pod of no VM that asks for some CPU."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    found = builders.vm_pod(name, containers=containers, **described)
    found["metadata"] |= {"labels": dict(labels or {}), "name": name}
    return found


def vm(name: str, **described: Any) -> Object:
    """A VM's pod."""
    found = pod(name, **described)
    found["metadata"]["labels"] |= {"kubevirt.io": "virt-launcher"}
    return found


def seen(described: Object) -> DecodedPod:
    """The pod as the cache reads it."""
    wire: Any = Decoders(RESOURCE.wire).object(json.dumps(described).encode())
    read: DecodedPod = RESOURCE.transform(wire)
    return read


def owner_of(described: Object) -> tuple[str, str]:
    """The owner of the assumed pod that this pod confirms."""
    meta = described["metadata"]
    return meta["namespace"], meta["ownerReferences"][0]["uid"]


def waiting(node: str, cpu: int = 1000) -> PodInfo:
    """A pod that is being created."""
    on = PodNode(node=node, queued=True, is_vm=True, assumed=True)
    return PodInfo("vms", Usage((("cpu", cpu),)), None, None, on)


def plain(loads: Mapping[str, Any]) -> Any:
    """Without amounts of nothing, which may be left of what was there."""
    return {
        node: (pods, {name: amount for name, amount in requested.items() if amount}, *rest)
        for node, (pods, requested, *rest) in loads.items()
    }


def says(scheduler_cache: SchedulerCache) -> Any:
    """All that it says of any node, and every pod that it would find."""
    loads = {
        node: (each.bound.pods, each.bound.amounts, each.expected, each.queued, each.pinned, each.assumed.pods)
        for node, each in scheduler_cache._nodes.items()
    }
    shortlisted = [scheduler_cache.shortlisted(assumed=assumed) for assumed in (False, True)]
    labelled = {
        (home, values): as_dict(held.node_counts)
        for homes in scheduler_cache.pod_index._namespaces.values()
        for home, group in homes.items()
        for values, held in group.items()
    }
    existing_anti_affinity = {
        key: as_dict(held.node_counts)
        for key, held in scheduler_cache.pod_index.existing_anti_affinity._all.items()
        if held.node_counts
    }
    return plain(loads), shortlisted, labelled, existing_anti_affinity


def made_of(pods: Mapping[str, Object], assumed: Mapping[Any, PodInfo]) -> SchedulerCache:
    """A cache that has only these."""
    index = Pods()
    for key, described in pods.items():
        index.put(key, None, seen(described))
    for owner, pod_info in assumed.items():
        index.assume(owner, [pod_info])
    return index.scheduler_cache


HAS: Final = {"pods": 100, "cpu": 8000}


def on(scheduler_cache: SchedulerCache, node: str) -> tuple[int, int, int, bool]:
    """How many pods a node has, how many are on their way there, their milli-CPU, and whether a VM waits for it."""
    info = scheduler_cache.node_info(node, HAS, {})
    return info.requested.pods, info.queued, info.requested.amounts.get("cpu", 0), info.waited_for


VARIANTS: Final = st.builds(
    lambda make, **described: (make, described),
    st.sampled_from((pod, vm)),
    node=st.sampled_from((None, *NODES)),
    pinned_to=st.sampled_from(((), ("n0",), ("n0", "n1"))),
    preferring=st.sampled_from(((), ("n1",), ("n0", "n1"))),
    gated=st.booleans(),
    phase=st.sampled_from((None, "Running", "Succeeded", "Failed")),
    deleting=st.booleans(),
    cpu=st.sampled_from(("250m", "1")),
    labels=st.sampled_from(({}, {"app": "db"}, {"kubevirt.io/created-by": "x"})),
    affinity=st.sampled_from((None, APART)),
    annotations=st.sampled_from((None, {"noise": "1"})),
)
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), VARIANTS),
        st.tuples(st.just("drop"), st.sampled_from(KEYS), st.none()),
        st.tuples(st.just("assume"), st.sampled_from(KEYS), st.sampled_from(NODES)),
        st.tuples(st.just("forget"), st.sampled_from(KEYS), st.none()),
        st.tuples(st.just("relist"), st.none(), st.dictionaries(st.sampled_from(KEYS), VARIANTS)),
    ),
    max_size=25,
)


class Cache:
    """A Pods index, fed as a ListWatch feeds it, and beside it what there is."""

    def __init__(self) -> None:
        self.index = Pods()
        self.records: dict[str, PodRecord] = {}
        self.pods: dict[str, Object] = {}
        self.assumed: dict[Any, PodInfo] = {}

    def put(self, key: str, variant: Any) -> None:
        """A pod is as described."""
        described = self._described(key, variant)
        new, old = seen(described), self.records.get(key)
        changed = old is None or not self.index.same(old, new)
        self.records[key] = self.index.put(key, old, new)
        assert changed or self.records[key] is old, "an equal pod is not counted again"
        self.pods[key] = described
        if old is None and new.virt_launcher:  # a change of the VM's other pod, in a live migration, shows nothing new
            self.assumed.pop(owner_of(described), None)

    def drop(self, key: str, _: None) -> None:
        """A pod is gone."""
        if key in self.records:
            self.index.drop(key, self.records.pop(key))
            del self.pods[key]

    def assume(self, key: str, node: str) -> None:
        """The VM of that name is drawn to a node."""
        owner = owner_of(vm(key))
        self.assumed[owner] = waiting(node)
        self.index.assume(owner, [self.assumed[owner]])

    def forget(self, key: str, _: None) -> None:
        """The API server asks about the pod again."""
        owner = owner_of(vm(key))
        self.assumed.pop(owner, None)
        self.index.forget(owner)

    def relist(self, _: None, variants: Mapping[str, Any]) -> None:
        """A list comes: what it has not is gone, and what differs is put."""
        for key in self.records.keys() - variants.keys():
            self.drop(key, None)
        for key, variant in variants.items():
            if key not in self.records or not self.index.same(self.records[key], seen(self._described(key, variant))):
                self.put(key, variant)

    @staticmethod
    def _described(key: str, variant: Any) -> Object:
        make, drawn = variant
        described = {name: value for name, value in drawn.items() if value is not None}
        pinned_to, preferring, gated = (described.pop(name) for name in ("pinned_to", "preferring", "gated"))
        own = described.pop("affinity", {})
        nodes = builders.node_affinity(
            required=list(map(builders.on_node, pinned_to)), preferred=dict.fromkeys(preferring, 100)
        )
        found: Object = make(key, affinity=nodes | own if pinned_to or preferring else own or None, **described)
        if gated:
            found["spec"]["schedulingGates"] = [{"name": "quota"}]
        return found


@given(steps=STEPS)
def test_what_is_counted_is_what_there_is(steps: list[tuple[str, Any, Any]]) -> None:
    """After any run of changes, lists and reservations: all nodes, labels and repulsions, as counted from nothing."""
    cache = Cache()
    for step, key, value in steps:
        getattr(cache, step)(key, value)
        assert says(cache.index.scheduler_cache) == says(made_of(cache.pods, cache.assumed))
    counted = Counter(node for each in cache.pods.values() for node in _places(each))
    counted += Counter(each.on.node for each in cache.assumed.values())
    scheduler_cache = cache.index.scheduler_cache
    assert {node: on(scheduler_cache, node)[0] for node in NODES} == {node: counted[node] for node in NODES}
    virt_launchers = {key for key, each in cache.pods.items() if "kubevirt.io" in each["metadata"]["labels"]}
    assert cache.index.virt_launchers.keys() == virt_launchers


def _places(described: Object) -> list[str]:
    """Where a pod counts, said once more."""
    spec = described["spec"]
    if described.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return []
    if "nodeName" in spec:
        return [spec["nodeName"]]
    if "schedulingGates" in spec:
        return []
    own = (spec.get("affinity") or {}).get("nodeAffinity", {})
    terms = own.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    wishes = own.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    if len(terms) == 1:
        return [terms[0]["matchFields"][0]["values"][0]]
    return [wish["preference"]["matchFields"][0]["values"][0] for wish in wishes]


UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
REFUSED: Final = {"status": {"phase": "Pending", "conditions": [UNSCHEDULABLE]}}
TOLD_BY_OTHERS: Final = {"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}}
NOMINATED: Final = {"status": {"phase": "Pending", "conditions": [UNSCHEDULABLE], "nominatedNodeName": "n1"}}
LIKES: Final = builders.node_affinity(preferred={"n1": 100})
LABELLED: Final = {"matchExpressions": [{"key": "zone", "operator": "Exists"}], **builders.on_node("n1")}
LIKES_A_ZONE: Final = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": LABELLED}, {"weight": 1}]
    }
}


def gated(described: Object) -> Object:
    """The pod with a scheduling gate."""
    return {**described, "spec": {**described["spec"], "schedulingGates": [{"name": "quota"}]}}


NOTHING: Final = (0, 0, 0, False)
PLACES: Final[dict[str, tuple[Object, tuple[int, int, int, bool]]]] = {
    "bound": (pod("a", node="n1"), (1, 0, 250, False)),
    "bound, not running yet": (pod("a", node="n1", phase="Pending"), (1, 0, 250, False)),
    "terminating: until it is gone": (pod("a", node="n1", deleting=True), (1, 0, 250, False)),
    "succeeded": (pod("a", node="n1", phase="Succeeded"), NOTHING),
    "failed": (pod("a", node="n1", phase="Failed"), NOTHING),
    "elsewhere": (pod("a", node="n0"), NOTHING),
    "a VM that is pinned": (vm("a", affinity=PIN), (1, 1, 250, True)),
    "one that kube-scheduler found no room for": (vm("a", affinity=PIN) | REFUSED, (1, 0, 250, True)),
    "one that others tell something of": (vm("a", affinity=PIN) | TOLD_BY_OTHERS, (1, 1, 250, True)),
    "a pod of somebody else's that is pinned": (pod("a", affinity=PIN), (1, 1, 250, False)),
    "one that is larger than the node takes nothing": (pod("a", affinity=PIN, cpu="9"), NOTHING),
    "nor does such a VM": (vm("a", affinity=PIN, cpu="9") | REFUSED, NOTHING),
    "preferring": (vm("a", affinity=LIKES), (1, 1, 250, False)),
    "preferring, and refused": (vm("a", affinity=LIKES) | REFUSED, (1, 0, 250, False)),
    "preferring by more than the name": (vm("a", affinity=LIKES_A_ZONE), NOTHING),
    "pinned to either of two, and preferring neither": (vm("a", pinned_to=NODES), NOTHING),
    "pinned to either of two that it prefers": (
        vm(
            "a",
            affinity=builders.node_affinity(required=map(builders.on_node, NODES), preferred=dict.fromkeys(NODES, 1)),
        ),
        (1, 1, 250, True),
    ),
    "nominated": (pod("a") | NOMINATED, (1, 0, 250, False)),
    "nominated where it is pinned": (vm("a", affinity=PIN) | NOMINATED, (1, 0, 250, True)),
    "gated": (gated(vm("a", affinity=PIN)), NOTHING),
    "pinned here, and on another node": (vm("a", affinity=PIN, node="n0"), NOTHING),
    "nowhere yet": (vm("a"), NOTHING),
    "a node of no name": (pod("a", node=""), NOTHING),
}


@pytest.mark.parametrize(("described", "counted"), PLACES.values(), ids=PLACES)
def test_where_a_pod_counts(described: Object, counted: tuple[int, int, int, bool]) -> None:
    """On its node until it is over or gone; without one, where its affinity draws it to."""
    assert on(made_of({"a": described}, {}), "n1") == counted


def test_a_pod_on_a_short_list_counts_once() -> None:
    """On the node that it prefers, and among those that are listed."""
    own = builders.node_affinity(required=map(builders.on_node, NODES), preferred={"n1": 100})
    scheduler_cache = made_of({"a": vm("a", affinity=own)}, {})
    assert (on(scheduler_cache, "n0"), on(scheduler_cache, "n1")) == (NOTHING, (1, 1, 250, False))
    assert list(scheduler_cache.shortlisted(assumed=False).values()) == [1]
    assert not scheduler_cache.shortlisted(assumed=True)


def test_how_a_terminating_pod_counts_among_others() -> None:
    """It has a presence of its own, because topology spread does not count it."""
    (counts,) = seen(pod("a", node="n1", deleting=True)).pod_infos
    assert counts.on.presence is Presence.TERMINATING


def test_what_repels_is_kept() -> None:
    """The required anti-affinity of any pod on a node."""
    (counts,) = seen(pod("a", node="n1", affinity=APART)).pod_infos
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "db"}), topology_key="kubernetes.io/hostname"
    )
    assert counts.anti_affinity == [term]


BASE: Final = {"node": "n1", "labels": {"app": "db"}}
CHANGES: Final[dict[str, tuple[Object, bool]]] = {
    "an annotation of others": ({"annotations": {"noise": "2"}}, True),
    "phase, on its node": ({"phase": "Pending"}, True),
    "over": ({"phase": "Failed"}, False),
    "node": ({"node": "n0"}, False),
    "deletion": ({"deleting": True}, False),
    "labels": ({"labels": {"app": "web"}}, False),
    "requests": ({"cpu": "1"}, False),
    "anti-affinity": ({"affinity": APART}, False),
}


@pytest.mark.parametrize(("change", "same"), CHANGES.values(), ids=CHANGES)
def test_only_what_counts_makes_a_pod_another(change: Object, same: bool) -> None:  # noqa: FBT001 - a column
    """Most events change nothing of that: they cost no counting."""
    index = Pods()
    record = index.put("a", None, seen(pod("a", **BASE)))
    new = seen(pod("a", **{**BASE, **change}))
    assert index.same(record, new) is same
    assert (index.put("a", record, new) is record) is same


def test_a_vm_that_changes_is_another() -> None:
    """What a launcher's record says is compared too, where it counts the same."""
    index = Pods()
    record = index.put("a", None, seen(vm("a", node="n1")))
    assert not index.same(record, seen(vm("a", node="n1", claims=["disk"])))


def test_a_pod_that_is_seen_is_assumed_no_more() -> None:
    """It counts once, from its admission to its end, whichever node it went to."""
    index, described = Pods(), vm("a", affinity=PIN)
    index.assume(owner_of(described), [waiting("n1", 250)])
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, False)
    record = index.put("a", None, seen(described))
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, True)
    record = index.put("a", record, seen(vm("a", affinity=PIN, node="n1")))
    assert on(index.scheduler_cache, "n1") == (1, 0, 250, False)
    index.drop("a", record)
    assert says(index.scheduler_cache) == says(SchedulerCache())


def test_another_vms_pod_confirms_nothing() -> None:
    """Nor a pod of a VM of the same name in another namespace, nor a pod without a VM."""
    index = Pods()
    index.assume(owner_of(vm("a")), [waiting("n1", 250)])
    for key, other in enumerate((vm("b"), vm("a", namespace="others"), pod("a"))):
        index.put(str(key), None, seen(other))
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, False)


def test_an_owner_has_one_assumed_pod() -> None:
    """A pod that is asked about again counts where it was drawn to last, until that is forgotten; twice is nothing."""
    index = Pods()
    first, last = (index.assume("owner", [waiting(node)]) for node in NODES)
    assert [on(index.scheduler_cache, node)[0] for node in NODES] == [0, 1]
    index.forget("owner", only=first)
    assert on(index.scheduler_cache, "n1")[0] == 1
    for _ in range(2):
        index.forget("owner", only=last)
    assert says(index.scheduler_cache) == says(SchedulerCache())


OURS: Final = {"app.kubernetes.io/name": "kubevirt-coschedule", "app.kubernetes.io/component": "webhook"}
REPLICAS: Final[dict[str, tuple[Object, int]]] = {
    "ours": (pod("a", node="n1", labels=OURS | {"pod-template-hash": "x"}, namespace="ours"), 1),
    "ours, and not ready": (pod("a", node="n1", labels=OURS, namespace="ours", phase="Pending"), 1),
    "over": (pod("a", node="n1", labels=OURS, namespace="ours", phase="Failed"), 0),
    "on no node yet: nobody can ask it": (pod("a", labels=OURS, namespace="ours"), 0),
    "of another namespace": (pod("a", node="n1", labels=OURS), 0),
    "of other labels": (pod("a", node="n1", labels={"app.kubernetes.io/name": "x"}, namespace="ours"), 0),
}


@pytest.mark.parametrize(("described", "counted"), REPLICAS.values(), ids=REPLICAS)
def test_our_own_pods_are_known(described: Object, counted: int) -> None:
    """By what the Service selects: whom an API server may ask."""
    index = Pods("ours")
    record = index.put("a", None, seen(described))
    assert len(index.replicas) == counted
    index.drop("a", record)
    assert not index.replicas


def test_only_vms_are_built() -> None:
    """Nobody asks for any other pod one by one."""
    index = Pods()
    assert to_object("vms/a", index.put("vms/a", None, seen(pod("a", node="n1")))) is None
    found = to_object("vms/b", index.put("vms/b", None, seen(vm("b", node="n1"))))
    assert (found.metadata.name, found.spec.node_name) == ("b", "n1")
