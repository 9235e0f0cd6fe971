"""The model of kube-scheduler: filter, score, a sample of the nodes above 100, assume and bind.

Upstream: pkg/scheduler/schedule_one.go and the plugins of the default profile. The filters come from the models of
tests/support (oracle, scheduler_model), which other tests hold to the real one. Of the scores these differ between the
nodes here: NodeResourcesFit (LeastAllocated), NodeResourcesBalancedAllocation, NodeAffinity and InterPodAffinity. All
others are equal: no node has a taint PreferNoSchedule, an image of its own or pods that a spread counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from simulation.api_server import POD, ApiServer, Object
from simulation.engine import Engine
from simulation.node_state import MAX_SCORE, NodeState, requests
from simulation.nodes import instance_manager_key
from support.models import oracle, scheduler_model
from support.models.scheduler_model import Situation

from webhook.core.view import Kind

_QUEUE_SECONDS: Final = (0.003, 0.03)
_BIND_SECONDS: Final = (0.005, 0.02)
_RETRY_SECONDS: Final = (1.0, 10.0)  # pkg/scheduler/backend/queue: initial and maximum back-off of a pod
_FLUSH_SECONDS: Final = 300.0  # the same: the longest that an unschedulable pod waits for another attempt
_MIN_FEASIBLE: Final = 100  # schedule_one.go, minFeasibleNodesToFind
_MIN_PERCENT: Final = 5  # schedule_one.go, minFeasibleNodesPercentageToFind
_AFFINITY_WEIGHT: Final = 2  # of NodeAffinity and of InterPodAffinity: apis/config/v1/default_plugins.go

Extender = Callable[[Object, Object], bool]


class KubeScheduler:
    """Binds pods to nodes, one after the other.

    Attributes:
        extender: a Filter plugin more, as a peer of the webhook has one; None for none.
        waiting: the pods that fit nowhere, with the time since when.
        waited_seconds: how long pods have waited that wait no more.
        queue_seconds: how long a pod is in the queue, at least and at most.
        ignores_anti_affinity, ignores_requests: planted faults.
    """

    def __init__(self, engine: Engine, api: ApiServer) -> None:
        self.engine = engine
        self.api = api
        self.extender: Extender | None = None
        self.waiting: dict[str, float] = {}
        self.waited_seconds = 0.0
        self.queue_seconds = _QUEUE_SECONDS
        self.ignores_anti_affinity = False
        self.ignores_requests = False
        self._states: dict[str, NodeState] = {}
        self._attempts: dict[str, int] = {}
        self._rng = engine.rng("kube-scheduler")
        self._free_at = 0.0
        self._next_start = 0
        self._assumed: set[str] = set()
        api.listeners.append(self._changed)

    def state(self, node: str) -> NodeState:
        """Return what a node has, and what its pods request."""
        return self._states[node]

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        if kind is Kind.NODE and value is not None:
            self._states.setdefault(key, NodeState(value))
            self._retry()
        if kind is not POD:
            return
        if value is None or value["status"].get("phase") in ("Succeeded", "Failed"):
            self._end_waiting(key)
            self._assumed.discard(key)
            for state in self._states.values():
                if state.remove(key):
                    self._retry()
        elif not value["spec"].get("nodeName") and key not in self.waiting and key not in self._assumed:
            self._assumed.add(key)
            self._queue(key)

    def _queue(self, key: str, pause: float = 0.0) -> None:
        start = max(self._free_at, self.engine.now + pause) + self._rng.uniform(*self.queue_seconds)
        self._free_at = start if pause == 0.0 else self._free_at
        self.api.act(start - self.engine.now, lambda: self._attempt(key))

    def _retry(self) -> None:
        """A node or a pod changed: pods that fit nowhere get another attempt after their back-off."""
        for key in list(self.waiting):
            if key not in self._assumed:
                self._assumed.add(key)
                tries = self._attempts.get(key, 0)
                self._queue(key, min(_RETRY_SECONDS[0] * 2**tries, _RETRY_SECONDS[1]))

    def _attempt(self, key: str) -> None:
        pod = self.api.pod(key)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            self._assumed.discard(key)
            return
        node = self.choose(pod)
        if node is None:
            self._refuse(key, pod)
            return
        self._states[node].add(key, requests(pod))
        self._end_waiting(key)
        self._attempts.pop(key, None)
        self.api.act(self._rng.uniform(*_BIND_SECONDS), lambda: self._bind(key, node))

    def _refuse(self, key: str, pod: Object) -> None:
        self._assumed.discard(key)
        self._attempts[key] = self._attempts.get(key, 0) + 1
        if key not in self.waiting:
            self.waiting[key] = self.engine.now
            condition = self._condition("False", reason="Unschedulable", message="0 nodes are available")
            self.api.put(POD, {**pod, "status": {**pod["status"], "conditions": [condition]}})
        self.engine.after(_FLUSH_SECONDS, self._retry)

    def _end_waiting(self, key: str) -> None:
        since = self.waiting.pop(key, None)
        if since is not None:
            self.waited_seconds += self.engine.now - since

    def _bind(self, key: str, node: str) -> None:
        pod = self.api.pod(key)
        self._assumed.discard(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            self._states[node].remove(key)
            return
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node}}
        self.api.put(POD, {**bound, "status": {**pod["status"], "conditions": [self._condition("True")]}})

    def _condition(self, status: str, **more: str) -> Object:
        return {"type": "PodScheduled", "status": status, "lastTransitionTime": self.engine.timestamp, **more}

    def choose(self, pod: Object) -> str | None:
        """Return the node with the best score, one of the best by chance; None if the pod fits on none."""
        feasible = self.feasible(pod)
        if len(feasible) <= 1:
            return feasible[0] if feasible else None
        wanted, preferred = requests(pod), preferences(pod)
        affinity = {name: self._preference(preferred, name) for name in feasible}
        most = max(affinity.values()) or 1
        there = self.api.objects[POD].keys()
        near = {node: weight for node, weight in near_weights(pod).items() if instance_manager_key(node) in there}
        nearest = max((near.get(name, 0) for name in feasible), default=0) or 1
        scores = {
            name: self._states[name].score(wanted)
            + _AFFINITY_WEIGHT * (MAX_SCORE * affinity[name] // most)
            + _AFFINITY_WEIGHT * (MAX_SCORE * near.get(name, 0) // nearest)
            for name in feasible
        }
        best = max(scores.values())
        return self._rng.choice([name for name, score in scores.items() if score == best])

    def feasible(self, pod: Object) -> list[str]:
        """Return the nodes that every filter lets the pod on; above 100 nodes a sample of them."""
        nodes = self.api.objects[Kind.NODE]
        names = list(nodes)
        enough, found = _to_find(len(names)), []
        start, self._next_start = self._next_start, (self._next_start + len(names)) % max(len(names), 1)
        for offset in range(len(names)):
            name = names[(start + offset) % len(names)]
            if self.fits(pod, nodes[name]):
                found.append(name)
                if len(found) == enough:
                    self._next_start = (start + offset + 1) % len(names)
                    break
        return found

    def fits(self, pod: Object, node: Object) -> bool:
        """Whether every filter lets the pod on the node."""
        name = node["metadata"]["name"]
        if not (self.ignores_requests or self._states[name].fits(requests(pod))) or not oracle.admits(pod, node):
            return False
        if not self.ignores_anti_affinity and self._related(pod):
            situation = Situation(
                list(self.api.objects[Kind.NODE].values()), self._related(pod), _NAMESPACES, pod, name
            )
            if scheduler_model.refusals(situation, pinned=False):
                return False
        return self.extender is None or self.extender(pod, node)

    def _related(self, pod: Object) -> list[Object]:
        """Return the pods on nodes that have rules about this pod, or that its rules are about: those of its VM."""
        uid = (pod["metadata"].get("labels") or {}).get("kubevirt.io/created-by")
        return [] if uid is None else [each for each in self.api.pods_of_vmi.get(uid, {}).values() if _is_there(each)]

    def _preference(self, preferred: Iterable[Object], name: str) -> int:
        labels = self.api.objects[Kind.NODE][name]["metadata"]["labels"]
        return sum(each["weight"] for each in preferred if oracle.term_matches(each["preference"], labels, name))


_NAMESPACES: Final = {"vms": {}}


def preferences(pod: Object) -> list[Object]:
    """Return the preferred terms of the pod's node affinity."""
    node_affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []


def near_weights(pod: Object) -> dict[str, int]:
    """Return node -> weight of the preferred pod affinity to its instance-manager pod."""
    pod_affinity = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    terms = pod_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    labels = [term["podAffinityTerm"]["labelSelector"]["matchLabels"] for term in terms]
    named = zip(labels, terms, strict=True)
    return {each["longhorn.io/node"]: term["weight"] for each, term in named if "longhorn.io/node" in each}


def _is_there(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _to_find(nodes: int) -> int:
    """schedule_one.go, numFeasibleNodesToFind."""
    if nodes < _MIN_FEASIBLE:
        return nodes
    percent = max(50 - nodes // 125, _MIN_PERCENT)
    return max(nodes * percent // 100, _MIN_FEASIBLE)
