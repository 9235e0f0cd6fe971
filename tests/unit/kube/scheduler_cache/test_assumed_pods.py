"""Assumed pods count until a watch shows them; and the pods of the webhook's own replicas."""

from __future__ import annotations

from typing import Final

import pytest
from support.models.cached_pods import NODES, PIN, Object, on, owner_of, pod, says, seen, vm, waiting

from webhook.core.scheduler.state.cache import SchedulerCache
from webhook.kube.scheduler_cache.assumed_pods import Pods


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
