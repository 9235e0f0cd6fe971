"""What the cache of all pods counts is what its pods and reservations add up to, however they came to be there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st
from watching import RESOURCES

from webhook.core.crowd import Attendant, Gathering
from webhook.core.neighbours import Presence
from webhook.core.pod_rules import LabelSelector, PodAffinityTerm
from webhook.core.requests import Usage
from webhook.core.tally import as_dict
from webhook.core.view import Kind
from webhook.kube.pods import Pods, Record, Seen, build
from webhook.kube.promises import Promises
from webhook.kube.wire import Decoders

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


def seen(described: Object) -> Seen:
    """The pod as the cache reads it."""
    wire: Any = Decoders(RESOURCE.wire).object(json.dumps(described).encode())
    read: Seen = RESOURCE.keep(wire)
    return read


def owner_of(described: Object) -> tuple[str, str]:
    """Whose reservation the pod stands for."""
    meta = described["metadata"]
    return meta["namespace"], meta["ownerReferences"][0]["uid"]


def waiting(node: str, cpu: int = 1000) -> Attendant:
    """A pod that is being created."""
    return Attendant(namespace="vms", node=node, usage=Usage((("cpu", cpu),)), presence=Presence.EXPECTED)


def says(gathering: Gathering) -> Any:
    """All that it says of any node, and every pod that it would find."""
    loads = {
        node: (load.pods, {name: amount for name, amount in load.requested.items() if amount})
        for node, load in gathering._loads.items()
        if load.pods
    }
    expected = {node: count for node, count in gathering._expected.items() if count}
    labelled = {
        (home, values): as_dict(held.tally)
        for homes in gathering.neighbours._namespaces.values()
        for home, group in homes.items()
        for values, held in group.items()
    }
    repulsions = {key: as_dict(held.tally) for key, held in gathering.neighbours.repulsions._all.items() if held.tally}
    return loads, expected, labelled, repulsions


def made_of(pods: Mapping[str, Object], reserved: Mapping[Any, Attendant]) -> Gathering:
    """A gathering of these alone."""
    index = Pods()
    for key, described in pods.items():
        index.put(key, None, seen(described))
    for owner, attendant in reserved.items():
        index.reserve(owner, attendant)
    return index.gathering


def on(gathering: Gathering, node: str) -> tuple[int, int, int]:
    """How many pods a node has, how many of them are expected, and their milli-CPU."""
    load = gathering.load(node)
    return load.pods, gathering.expected(node), load.requested.get("cpu", 0)


VARIANTS: Final = st.builds(
    lambda make, **described: (make, described),
    st.sampled_from((pod, vm)),
    node=st.sampled_from((None, *NODES)),
    pinned_to=st.sampled_from(((), ("n0",), ("n0", "n1"))),
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
        st.tuples(st.just("reserve"), st.sampled_from(KEYS), st.sampled_from(NODES)),
        st.tuples(st.just("release"), st.sampled_from(KEYS), st.none()),
        st.tuples(st.just("relist"), st.none(), st.dictionaries(st.sampled_from(KEYS), VARIANTS)),
    ),
    max_size=25,
)


class Cache:
    """A Pods index, fed as a ListWatch feeds it, and beside it what there is."""

    def __init__(self) -> None:
        self.index = Pods()
        self.records: dict[str, Record] = {}
        self.pods: dict[str, Object] = {}
        self.reserved: dict[Any, Attendant] = {}

    def put(self, key: str, variant: Any) -> None:
        """A pod is as described."""
        described = self._described(key, variant)
        new, old = seen(described), self.records.get(key)
        changed = old is None or not self.index.same(old, new)
        self.records[key] = self.index.put(key, old, new)
        assert changed or self.records[key] is old, "what is the same is not counted anew"
        self.pods[key] = described
        if changed and new.launcher:
            self.reserved.pop(owner_of(described), None)

    def drop(self, key: str, _: None) -> None:
        """A pod is gone."""
        if key in self.records:
            self.index.drop(key, self.records.pop(key))
            del self.pods[key]

    def reserve(self, key: str, node: str) -> None:
        """The VM of that name is pinned to a node."""
        owner = owner_of(vm(key))
        self.reserved[owner] = waiting(node)
        self.index.reserve(owner, self.reserved[owner])

    def release(self, key: str, _: None) -> None:
        """Nobody waits for it any longer."""
        owner = owner_of(vm(key))
        self.reserved.pop(owner, None)
        self.index.release(owner)

    def relist(self, _: None, variants: Mapping[str, Any]) -> None:
        """A list comes: what it has not is gone, and what differs is put."""
        for key in self.records.keys() - variants.keys():
            self.drop(key, None)
        for key, variant in variants.items():
            if key not in self.records or not self.index.same(self.records[key], seen(self._described(key, variant))):
                self.put(key, variant)

    @staticmethod
    def _described(key: str, variant: Any) -> Object:
        make, described = variant
        found: Object = make(key, **{name: value for name, value in described.items() if value is not None})
        if described["pinned_to"] and described["affinity"]:
            found["spec"]["affinity"] = APART | builders.node_affinity(
                required=map(builders.on_node, described["pinned_to"])
            )
        return found


@given(steps=STEPS)
def test_what_is_counted_is_what_there_is(steps: list[tuple[str, Any, Any]]) -> None:
    """After any run of changes, lists and reservations: all nodes, labels and repulsions, as counted from nothing."""
    cache = Cache()
    for step, key, value in steps:
        getattr(cache, step)(key, value)
        assert says(cache.index.gathering) == says(made_of(cache.pods, cache.reserved))
    counted = Counter(node for each in cache.pods.values() if (node := _place(each)))
    counted += Counter(each.node for each in cache.reserved.values())
    assert {node: cache.index.gathering.load(node).pods for node in NODES} == {node: counted[node] for node in NODES}
    launchers = {key for key, each in cache.pods.items() if "kubevirt.io" in each["metadata"]["labels"]}
    assert cache.index.launchers.keys() == launchers


def _place(described: Object) -> str:
    """Where a pod counts, said once more."""
    spec = described["spec"]
    if "nodeName" in spec:
        return "" if described["status"]["phase"] in ("Succeeded", "Failed") else str(spec["nodeName"])
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = required["nodeSelectorTerms"] if required else []
    return str(terms[0]["matchFields"][0]["values"][0]) if len(terms) == 1 else ""


UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
PLACES: Final[dict[str, tuple[Object, tuple[int, int, int]]]] = {
    "bound": (pod("a", node="n1"), (1, 0, 250)),
    "bound, not running yet": (pod("a", node="n1", phase="Pending"), (1, 0, 250)),
    "terminating: until it is gone": (pod("a", node="n1", deleting=True), (1, 0, 250)),
    "succeeded": (pod("a", node="n1", phase="Succeeded"), (0, 0, 0)),
    "failed": (pod("a", node="n1", phase="Failed"), (0, 0, 0)),
    "elsewhere": (pod("a", node="n0"), (0, 0, 0)),
    "pinned, and not scheduled": (vm("a", affinity=PIN), (1, 1, 250)),
    "pinned by somebody else": (pod("a", affinity=PIN), (1, 1, 250)),
    "pinned to either of two": (vm("a", pinned_to=NODES), (0, 0, 0)),
    "pinned, and refused by the scheduler": (
        vm("a", affinity=PIN) | {"status": {"phase": "Pending", "conditions": [UNSCHEDULABLE]}},
        (1, 1, 250),
    ),
    "pinned here, and on another node": (vm("a", affinity=PIN, node="n0"), (0, 0, 0)),
    "nowhere yet": (vm("a"), (0, 0, 0)),
    "a node of no name": (pod("a", node=""), (0, 0, 0)),
}


@pytest.mark.parametrize(("described", "counted"), PLACES.values(), ids=PLACES)
def test_where_a_pod_counts(described: Object, counted: tuple[int, int, int]) -> None:
    """On its node until it is over or gone; without one, on the only one that it may run on, as an expected one."""
    assert on(made_of({"a": described}, {}), "n1") == counted


def test_how_a_terminating_pod_counts_among_others() -> None:
    """It is told apart, for topology spread does not count it."""
    counts = seen(pod("a", node="n1", deleting=True)).counts
    assert counts is not None
    assert counts.presence is Presence.TERMINATING


def test_what_repels_is_kept() -> None:
    """The required anti-affinity of any pod on a node."""
    counts = seen(pod("a", node="n1", affinity=APART)).counts
    assert counts is not None
    term = PodAffinityTerm(
        label_selector=LabelSelector(match_labels={"app": "db"}), topology_key="kubernetes.io/hostname"
    )
    assert counts.repels == [term]


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


def test_a_pod_that_is_seen_releases_its_reservation() -> None:
    """It counts once, from its admission to its end, whichever node it went to."""
    index, described = Pods(), vm("a", affinity=PIN)
    index.reserve(owner_of(described), waiting("n1", 250))
    assert on(index.gathering, "n1") == (1, 1, 250)
    record = index.put("a", None, seen(described))
    assert on(index.gathering, "n1") == (1, 1, 250)
    record = index.put("a", record, seen(vm("a", affinity=PIN, node="n1")))
    assert on(index.gathering, "n1") == (1, 0, 250)
    index.drop("a", record)
    assert on(index.gathering, "n1") == (0, 0, 0)


def test_another_vms_pod_releases_nothing() -> None:
    """Nor one of the same VM's name in another namespace, nor a pod that is no VM's."""
    index = Pods()
    index.reserve(owner_of(vm("a")), waiting("n1", 250))
    for key, other in enumerate((vm("b"), vm("a", namespace="others"), pod("a"))):
        index.put(str(key), None, seen(other))
    assert on(index.gathering, "n1") == (1, 1, 250)


def test_an_owner_has_one_reservation() -> None:
    """A pod that is asked about again counts where it was pinned last, until that is let go; twice is nothing."""
    index = Pods()
    for node in NODES:
        index.reserve("owner", waiting(node))
    assert [on(index.gathering, node)[0] for node in NODES] == [0, 1]
    last = index.reserved("owner")
    assert last is not None
    index.release("owner", only=Gathering().add(waiting("n1")))
    assert index.reserved("owner") is last
    for _ in range(2):
        index.release("owner")
    assert index.reserved("owner") is None
    assert on(index.gathering, "n1") == (0, 0, 0)


TOLD: Final = {builders.DECISION: "required on n1: x"}
OTHERS: Final[dict[str, tuple[Object, tuple[int, int]]]] = {
    "another replica's pin": (vm("b", affinity=PIN, annotations=TOLD), (0, 1)),
    "bound already": (vm("b", affinity=PIN, node="n1", annotations=TOLD), (0, 1)),
    "pinned by somebody else": (vm("b", affinity=PIN), (0, 0)),
    "only preferred": (vm("b", node="n1", annotations={builders.DECISION: "preferred on n1: x"}), (0, 0)),
    "ours": (vm("a", affinity=PIN, annotations=TOLD), (1, 0)),
}


@pytest.mark.parametrize(("other", "counted"), OTHERS.values(), ids=OTHERS)
def test_whose_pin_it_was_is_told_once(other: Object, counted: tuple[int, int]) -> None:
    """Ours had a reservation; another replica's has our annotation all the same."""
    index, told = Pods(), []

    class Told(Promises):
        def seen(self, node: str, *, ours: bool) -> None:
            assert node == "n1"
            told.append(ours)

    index.promises = Told()
    index.reserve(owner_of(vm("a")), waiting("n1"))
    record = index.put("b", None, seen(other))
    assert (told.count(True), told.count(False)) == counted
    index.put("b", record, seen({**other, "spec": {**other["spec"], "volumes": []}, "status": {"phase": "Unknown"}}))
    assert (told.count(True), told.count(False)) == counted


def test_only_vms_are_built() -> None:
    """Nobody asks for any other pod one by one."""
    index = Pods()
    assert build("vms/a", index.put("vms/a", None, seen(pod("a", node="n1")))) is None
    found = build("vms/b", index.put("vms/b", None, seen(vm("b", node="n1"))))
    assert (found.metadata.name, found.spec.node_name) == ("b", "n1")
