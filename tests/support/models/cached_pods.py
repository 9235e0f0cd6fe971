"""Pods as the cache of all pods reads them, and what the cache then says of a node."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from support.fakes.watching import RESOURCES
from support.objects import builders
from support.objects.builders import Object

from webhook.core.observe.past_decision import Decided, PastDecision, as_annotation
from webhook.core.scheduler.cache import NodeRequests, SchedulerCache
from webhook.core.scheduler.pod_info import NO_TERMS, PodInfo, PodNode
from webhook.core.scheduler.pod_requests import Usage
from webhook.core.view import Kind
from webhook.kube.records.pods import PodRecord
from webhook.kube.scheduler_cache.assumed_pods import PodIndex
from webhook.kube.wire import Decoders

RESOURCE: Final = RESOURCES[Kind.VIRT_LAUNCHER_POD]
NODES: Final = ("n0", "n1")
HAS: Final = {"pods": 100, "cpu": 8000}


def pod(name: str, *, cpu: str = "250m", labels: Mapping[str, str] | None = None, **described: Any) -> Object:
    """Return a pod of no VM that requests some CPU."""
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    found = builders.vm_pod(name, containers=containers, **described)
    found["metadata"] |= {"labels": dict(labels or {}), "name": name}
    return found


def vm(name: str, **described: Any) -> Object:
    """Return a VM's pod, with the record of the webhook."""
    return recorded(unrecorded_vm(name, **described))


def unrecorded_vm(name: str, **described: Any) -> Object:
    """Return a VM's pod for which the API server did not call the webhook."""
    found = pod(name, **described)
    found["metadata"]["labels"] |= {"kubevirt.io": "virt-launcher"}
    return found


def recorded(described: Object, decided: Decided = Decided.PREFERRED) -> Object:
    """Return the pod with a record of the webhook."""
    meta = described["metadata"]
    record = as_annotation(PastDecision(decided=decided), meta["ownerReferences"][0]["uid"])
    return {**described, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), **record}}}


def seen(described: Object) -> PodRecord:
    """Return the pod as the cache reads it."""
    wire: Any = Decoders(RESOURCE.wire, RESOURCE.large).object(json.dumps(described).encode())
    read: PodRecord = RESOURCE.transform(wire)
    return read


def owner_of(described: Object) -> tuple[str, str]:
    """Return the owner of the assumed pod that this pod confirms."""
    meta = described["metadata"]
    return meta["namespace"], meta["ownerReferences"][0]["uid"]


def waiting(node: str, cpu: int = 1000) -> PodInfo:
    """Return an assumed pod: no watch has shown it yet."""
    return PodInfo("vms", Usage((("cpu", cpu),)), NO_TERMS, PodNode(node=node, queued=True))


def load(requests: NodeRequests) -> Any:
    """Return the sums without amounts of zero, which a removed pod may leave behind."""
    return requests.pods, {name: amount for name, amount in requests.amounts.items() if amount}


def says(scheduler_cache: SchedulerCache) -> Any:
    """Return all that the cache holds: requests and labels on each node, the short lists, and the terms."""
    infos = {node: scheduler_cache.node_info(node, HAS, {}) for node in scheduler_cache._nodes}
    loads = {node: (load(info.requested), load(info.on_the_way)) for node, info in infos.items()}
    labelled = Counter(
        (each.on, each.namespace, frozenset((each.labels or {}).items()))
        for info in infos.values()
        for each in info.labelled
    )
    return loads, dict(scheduler_cache.shortlisted), labelled, scheduler_cache.existing_terms._terms


def made_of(pods: Mapping[str, Object], assumed: Mapping[Any, PodInfo]) -> SchedulerCache:
    """Return a cache that has only these pods and assumed pods."""
    index = PodIndex()
    for key, described in pods.items():
        index.put(key, None, seen(described))
    for owner, pod_info in assumed.items():
        index.assume(owner, [pod_info])
    return index.scheduler_cache


def on(scheduler_cache: SchedulerCache, node: str) -> tuple[int, int, int, bool]:
    """Return the node's pods, those on the way to it, the milli-CPU of all, and whether a pinned VM is among them."""
    info = scheduler_cache.node_info(node, HAS, {})
    pinned = any(each.on.pinned for each in info.labelled)
    return info.requested.pods, info.on_the_way.pods, info.requested.of("cpu"), pinned


PIN: Final = builders.node_affinity(required=[builders.on_node("n1")])
APART: Final = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
