"""The cache of all pods counts the sum of its pods and assumed pods, whatever happened before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from support.models.cached_pods import (
    APART,
    NODES,
    Object,
    made_of,
    on,
    owner_of,
    pod,
    says,
    seen,
    unrecorded_vm,
    vm,
    waiting,
)
from support.objects import builders
from support.objects.builders import WRITTEN

from webhook.core.scheduler.pod_info import PodInfo
from webhook.kube.records.pods import PodRecord
from webhook.kube.scheduler_cache.assumed_pods import PodIndex

KEYS: Final = ("vms/a", "vms/b", "vms/c")
VARIANTS: Final = st.builds(
    lambda make, **described: (make, described),
    st.sampled_from((pod, unrecorded_vm, vm)),
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
        self.index = PodIndex()
        self.records: dict[str, PodRecord] = {}
        self.pods: dict[str, Object] = {}
        self.assumed: dict[Any, PodInfo] = {}

    def put(self, key: str, variant: Any) -> None:
        """A pod is as described."""
        described = self._described(key, variant)
        new, old = seen(described), self.records.get(key)
        changed = old != new
        self.records[key] = self.index.put(key, old, new)
        assert changed or self.records[key] is old, "an equal pod is not counted again"
        self.pods[key] = described
        # As the VM's other pod in a live migration: that shows nothing new.
        was_bound = old is not None and bool(old.pod_infos) and not old.by_record
        if changed and new.virt_launcher and (new.by_record or not was_bound):
            self.assumed.pop(owner_of(described), None)

    def drop(self, key: str, _: None) -> None:
        """A pod is gone."""
        if key in self.records:
            self.index.drop(key, self.records.pop(key))
            del self.pods[key]

    def assume(self, key: str, node: str) -> None:
        """The VM of that name is drawn to a node."""
        owner = owner_of(vm(_name(key)))
        self.assumed[owner] = waiting(node)
        self.index.assume(owner, [self.assumed[owner]])

    def forget(self, key: str, _: None) -> None:
        """The API server asks about the pod again."""
        owner = owner_of(vm(_name(key)))
        self.assumed.pop(owner, None)
        self.index.forget(owner)

    def relist(self, _: None, variants: Mapping[str, Any]) -> None:
        """A list comes: what it has not is gone, and what differs is put."""
        for key in self.records.keys() - variants.keys():
            self.drop(key, None)
        for key, variant in variants.items():
            if self.records.get(key) != seen(self._described(key, variant)):
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
        found: Object = make(_name(key), affinity=nodes | own if pinned_to or preferring else own or None, **described)
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


@given(variants=st.lists(VARIANTS.filter(lambda each: each[1]["node"] is None), max_size=5))
def test_unbound_pods_of_strangers_count_nowhere(variants: list[Any]) -> None:
    """Whatever their labels, affinity and records: none of them belongs to a VirtualMachineInstance that exists."""
    index = PodIndex(longhorn_namespace="longhorn-system", nodes_max=lambda _vmi, _uid: 0)
    index.assume("owner", [waiting("n1")])
    before = says(index.scheduler_cache)
    for key, variant in zip((f"vms/{number}" for number in range(5)), variants, strict=False):
        index.put(key, None, seen(Cache._described(key, variant)))
    assert says(index.scheduler_cache) == before


def _name(key: str) -> str:
    return key.partition("/")[2]


def _places(described: Object) -> list[str]:
    """Where a pod counts, said once more."""
    spec = described["spec"]
    if described.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return []
    if "nodeName" in spec:
        return [spec["nodeName"]]
    if "schedulingGates" in spec or WRITTEN not in (described["metadata"].get("annotations") or {}):
        return []
    own = (spec.get("affinity") or {}).get("nodeAffinity", {})
    terms = own.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    wishes = own.get("preferredDuringSchedulingIgnoredDuringExecution", [])
    if len(terms) == 1:
        return [terms[0]["matchFields"][0]["values"][0]]
    return [wish["preference"]["matchFields"][0]["values"][0] for wish in wishes]
