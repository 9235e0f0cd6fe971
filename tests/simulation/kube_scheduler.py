"""The model of kube-scheduler: filter, score, assume and bind.

Upstream: pkg/scheduler/schedule_one.go and the plugins of the default profile. The filters of NodeAffinity and
TaintToleration come from the model of tests/support. NodeAffinity and InterPodAffinity outweigh NodeResourcesFit
(LeastAllocated), which decides among equals. Of the resources memory alone is short here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from simulation.admission import node_affinity
from simulation.api_server import POD, ApiServer, Object, is_over, uid_of_vmi
from simulation.engine import Engine
from simulation.nodes import instance_manager_key
from support.models import oracle

from webhook.core.view import Kind

_QUEUE_SECONDS: Final = (0.003, 0.03)
_BIND_SECONDS: Final = (0.005, 0.02)
_RETRY_SECONDS: Final = (1.0, 10.0)  # pkg/scheduler/backend/queue: initial and maximum back-off of a pod
_FLUSH_SECONDS: Final = 30.0  # the same: unschedulable pods get another attempt, whatever has changed
_MEBI: Final = 1024**2


class NodeState:
    """What memory a node has, and what its pods request of it, in bytes (noderesources/fit.go)."""

    def __init__(self, node: Object) -> None:
        self.memory = int(node["status"]["allocatable"]["memory"].removesuffix("Gi")) * 1024**3
        self.pods: dict[str, int] = {}

    @property
    def free(self) -> int:
        """The bytes of memory that no pod requests."""
        return self.memory - sum(self.pods.values())


class KubeScheduler:
    """Binds pods to nodes, one after the other.

    Attributes:
        waiting: the pods that fit nowhere, with the time since when.
        states: what each node has, and what its pods request.
    """

    def __init__(self, engine: Engine, api: ApiServer) -> None:
        self.engine = engine
        self.api = api
        self.waiting: dict[str, float] = {}
        self.states: dict[str, NodeState] = {}
        self._rng = engine.rng("kube-scheduler")
        self._free_at = 0.0
        self._assumed: set[str] = set()
        api.listeners.append(self._changed)
        engine.after(_FLUSH_SECONDS, self._flush)

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        if kind is Kind.NODE and value is not None:
            self.states.setdefault(key, NodeState(value))
            self._retry()
        if kind is not POD:
            return
        if value is None or is_over(value):
            self.waiting.pop(key, None)
            self._assumed.discard(key)
            for state in self.states.values():
                if state.pods.pop(key, None) is not None:
                    self._retry()
        elif not value["spec"].get("nodeName") and key not in self.waiting and key not in self._assumed:
            self._assumed.add(key)
            self._queue(key)

    def _queue(self, key: str, pause: float = 0.0) -> None:
        start = max(self._free_at, self.engine.now + pause) + self._rng.uniform(*_QUEUE_SECONDS)
        self._free_at = start if pause == 0.0 else self._free_at
        self.api.act(start - self.engine.now, lambda: self._attempt(key))

    def _flush(self) -> None:
        self._retry()
        self.engine.after(_FLUSH_SECONDS, self._flush)

    def _retry(self) -> None:
        """A node or a pod changed: pods that fit nowhere get another attempt after their back-off."""
        for key in list(self.waiting):
            if key not in self._assumed:
                self._assumed.add(key)
                self._queue(key, self._rng.uniform(*_RETRY_SECONDS))

    def _attempt(self, key: str) -> None:
        pod = self.api.pod(key)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            self._assumed.discard(key)
            return
        node = self.choose(pod)
        if node is None:
            self._refuse(key, pod)
            return
        self.states[node].pods[key] = requests(pod)
        self.waiting.pop(key, None)
        self.api.act(self._rng.uniform(*_BIND_SECONDS), lambda: self._bind(key, node))

    def _refuse(self, key: str, pod: Object) -> None:
        self._assumed.discard(key)
        if key not in self.waiting:
            self.waiting[key] = self.engine.now
            condition = self._condition("False", reason="Unschedulable", message="0 nodes are available")
            self.api.put(POD, {**pod, "status": {**pod["status"], "conditions": [condition]}})

    def _bind(self, key: str, node: str) -> None:
        pod = self.api.pod(key)
        self._assumed.discard(key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            self.states[node].pods.pop(key, None)
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
        preferred = node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or []
        near, there = near_weights(pod), self.api.objects[POD].keys()

        def wish(name: str) -> int:
            is_near = instance_manager_key(name) in there
            return self._preference(preferred, name) + (near.get(name, 0) if is_near else 0)

        scores = {name: (wish(name), self.states[name].free) for name in feasible}
        best = max(scores.values())
        return self._rng.choice([name for name, score in scores.items() if score == best])

    def feasible(self, pod: Object) -> list[str]:
        """Return the nodes that every filter lets the pod on."""
        return [name for name, node in self.api.objects[Kind.NODE].items() if self.fits(pod, node)]

    def fits(self, pod: Object, node: Object) -> bool:
        """Whether every filter lets the pod on the node."""
        name = node["metadata"]["name"]
        if requests(pod) > self.states[name].free or not oracle.admits(pod, node):
            return False
        is_target = "podAntiAffinity" in (pod["spec"].get("affinity") or {})  # of a migration: not beside its source
        return not is_target or name not in self._nodes_of_vm(pod)

    def _nodes_of_vm(self, pod: Object) -> set[str]:
        """Return the nodes of the other pods of the VM."""
        pods = [each for each in self.api.objects[POD].values() if uid_of_vmi(each) == uid_of_vmi(pod)]
        return {node for each in pods if (node := each["spec"].get("nodeName")) and not is_over(each)}

    def _preference(self, preferred: Iterable[Object], name: str) -> int:
        labels = self.api.objects[Kind.NODE][name]["metadata"]["labels"]
        return sum(each["weight"] for each in preferred if oracle.term_matches(each["preference"], labels, name))


def near_weights(pod: Object) -> dict[str, int]:
    """Return node -> weight of the preferred pod affinity to its instance-manager pod."""
    pod_affinity = (pod["spec"].get("affinity") or {}).get("podAffinity") or {}
    terms = pod_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    labels = [term["podAffinityTerm"]["labelSelector"]["matchLabels"] for term in terms]
    named = zip(labels, terms, strict=True)
    return {each["longhorn.io/node"]: term["weight"] for each, term in named if "longhorn.io/node" in each}


def requests(pod: Object) -> int:
    """Return the bytes of memory that the pod requests."""
    wanted = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return int(wanted.get("memory", "0Mi").removesuffix("Mi")) * _MEBI
