"""Assumed pods count until a watch shows them; and the pods of the webhook's own replicas."""

from __future__ import annotations

from typing import Final

import pytest
from support.models.cached_pods import NODES, PIN, Object, on, owner_of, pod, recorded, says, seen, vm, waiting
from support.objects import builders

from webhook.core.scheduler.cache import SchedulerCache
from webhook.kube.scheduler_cache.assumed_pods import PodIndex


def test_a_pod_that_is_seen_is_assumed_no_more() -> None:
    """It counts once, from its admission to its end, whichever node it went to."""
    index, described = PodIndex(), vm("a", affinity=PIN)
    index.assume(owner_of(described), [waiting("n1", 250)])
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, False)
    record = index.put("vms/a", None, seen(described))
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, True)
    record = index.put("vms/a", record, seen(vm("a", affinity=PIN, node="n1")))
    assert on(index.scheduler_cache, "n1") == (1, 0, 250, False)
    index.drop("vms/a", record)
    assert says(index.scheduler_cache) == says(SchedulerCache())


def test_an_owner_has_one_assumed_pod() -> None:
    """A pod that is asked about again counts where it was drawn to last, until that is forgotten; twice is nothing."""
    index = PodIndex()
    first, last = (index.assume("owner", [waiting(node)]) for node in NODES)
    assert [on(index.scheduler_cache, node)[0] for node in NODES] == [0, 1]
    index.forget("owner", only=first)
    assert on(index.scheduler_cache, "n1")[0] == 1
    for _ in range(2):
        index.forget("owner", only=last)
    assert says(index.scheduler_cache) == says(SchedulerCache())


class VMIs(dict[str, str]):
    """The VirtualMachineInstances that exist: NAMESPACE/NAME -> uid. Each names two claims."""

    def nodes_max(self, vmi: str, uid: str | None) -> int:
        """Return on how many nodes the pod of a VirtualMachineInstance counts."""
        return 2 if self.get(vmi) == uid else 0


def test_an_unbound_pod_counts_while_its_vmi_exists() -> None:
    """Whichever of the two watches is ahead. Until both are shown, the pod stays assumed."""
    vmis, described = VMIs(), vm("a", affinity=PIN)
    index, owner = PodIndex(nodes_max=vmis.nodes_max), owner_of(described)
    uid = owner[1]
    index.assume(owner, [waiting("n1", 250)])
    record = index.put("vms/a", None, seen(described))
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, False)
    vmis["vms/a"] = uid
    index.recount("vms/a", uid)
    assert on(index.scheduler_cache, "n1") == (1, 1, 250, True)
    vmis["vms/a"] = "of its next start"
    index.recount("vms/a", uid)
    assert says(index.scheduler_cache) == says(SchedulerCache())
    index.recount_all()
    assert says(index.scheduler_cache) == says(SchedulerCache())
    record = index.put("vms/a", record, seen(vm("a", affinity=PIN, node="n1")))
    assert on(index.scheduler_cache, "n1") == (1, 0, 250, False), "a bound pod has its resources, with a VM or without"
    index.drop("vms/a", record)
    assert says(index.scheduler_cache) == says(SchedulerCache())
    assert not index._starts


def test_one_unbound_pod_of_a_vmi_counts() -> None:
    """On as many nodes as the VMI has claims. When it goes, another one counts."""
    vmis = VMIs()
    index = PodIndex(nodes_max=vmis.nodes_max)
    many = {f"n{number}": 100 for number in range(4)}
    pods = [vm(name, vm="db", affinity=builders.node_affinity(preferred=many)) for name in ("a", "b")]
    vmis["vms/db"] = owner_of(pods[0])[1]
    keys = ["vms/a", "vms/b"]
    records = [index.put(key, None, seen(each)) for key, each in zip(keys, pods, strict=True)]
    for key, record in zip(keys, records, strict=True):
        assert [on(index.scheduler_cache, node)[0] for node in many] == [1, 1, 0, 0]
        index.drop(key, record)
    assert says(index.scheduler_cache) == says(SchedulerCache())


def test_an_unbound_share_manager_pod_counts_in_longhorns_namespace() -> None:
    """By its record. Nobody else may create pods there."""
    index = PodIndex(longhorn_namespace="longhorn-system")
    for namespace, counted in (("vms", 0), ("longhorn-system", 1)):
        described = recorded(pod("a", affinity=PIN, namespace=namespace))
        record = index.put(f"{namespace}/a", None, seen(described))
        assert on(index.scheduler_cache, "n1") == (counted, counted, 250 * counted, False)
        index.drop(f"{namespace}/a", record)
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
    index = PodIndex("ours")
    record = index.put("vms/a", None, seen(described))
    assert len(index.replicas) == counted
    index.drop("vms/a", record)
    assert not index.replicas
