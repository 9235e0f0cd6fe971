"""The model of kube-scheduler: filter, score, a sample of the nodes above 100, assume and bind.

Upstream: pkg/scheduler/schedule_one.go and the plugins of the default profile. The filters come from the models of
tests/support (oracle, scheduler_model), which other tests hold to the real one. Of the scores these differ between the
nodes here: NodeResourcesFit (LeastAllocated), NodeResourcesBalancedAllocation and NodeAffinity. All others are equal:
no node has a taint PreferNoSchedule, an image of its own or pods that a spread counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from simulation.api_server import POD, ApiServer, Object
from simulation.engine import Engine
from support.models import oracle, scheduler_model
from support.models.scheduler_model import Situation

from webhook.core.view import Kind

_QUEUE_SECONDS: Final = (0.003, 0.03)
_BIND_SECONDS: Final = (0.005, 0.02)
_RETRY_SECONDS: Final = (1.0, 10.0)  # pkg/scheduler/backend/queue: initial and maximum back-off of a pod
_FLUSH_SECONDS: Final = 300.0  # the same: the longest that an unschedulable pod waits for another attempt
_MIN_FEASIBLE: Final = 100  # schedule_one.go, minFeasibleNodesToFind
_MIN_PERCENT: Final = 5  # schedule_one.go, minFeasibleNodesPercentageToFind
_MAX_SCORE: Final = 100
_AFFINITY_WEIGHT: Final = 2  # apis/config/v1/default_plugins.go
_DEFAULT_MILLI_CPU: Final = 100  # pkg/scheduler/util/pod_resources.go: what a pod without requests scores as
_DEFAULT_MEMORY: Final = 200 * 1024**2
_MEBI: Final = 1024**2

Extender = Callable[[Object, Object], bool]


class Requests(NamedTuple):
    """What a pod requests: milli-CPU and bytes."""

    cpu: int
    memory: int

    @property
    def scored(self) -> Requests:
        """What the pod scores as."""
        return Requests(self.cpu or _DEFAULT_MILLI_CPU, self.memory or _DEFAULT_MEMORY)


class NodeState:
    """What a node has, and what its pods request: together, and as they score, with the defaults of empty requests."""

    def __init__(self, node: Object) -> None:
        allocatable = node["status"]["allocatable"]
        self.has = Requests(int(allocatable["cpu"]) * 1000, int(allocatable["memory"].removesuffix("Gi")) * 1024**3)
        self.pods: dict[str, Requests] = {}
        self.requested = Requests(0, 0)
        self._scored = Requests(0, 0)

    def add(self, key: str, pod: Requests) -> None:
        """Count a pod."""
        self.pods[key] = pod
        self._sum(pod, 1)

    def remove(self, key: str) -> bool:
        """Stop counting a pod; return whether it was counted."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._sum(pod, -1)
        return pod is not None

    def fits(self, wanted: Requests) -> bool:
        """NodeResourcesFit, Filter."""
        requested = self.requested
        return requested.cpu + wanted.cpu <= self.has.cpu and requested.memory + wanted.memory <= self.has.memory

    def score(self, wanted: Requests) -> int:
        """LeastAllocated and BalancedAllocation of this pod on this node."""
        more = wanted.scored
        cpu, memory = self._scored.cpu + more.cpu, self._scored.memory + more.memory
        least = (_free(cpu, self.has.cpu) + _free(memory, self.has.memory)) // 2
        apart = abs(min(cpu / self.has.cpu, 1.0) - min(memory / self.has.memory, 1.0)) / 2
        return least + int((1 - apart) * _MAX_SCORE)

    def _sum(self, pod: Requests, sign: int) -> None:
        scored = pod.scored
        self.requested = Requests(self.requested.cpu + sign * pod.cpu, self.requested.memory + sign * pod.memory)
        self._scored = Requests(self._scored.cpu + sign * scored.cpu, self._scored.memory + sign * scored.memory)


class KubeScheduler:
    """Binds pods to nodes, one after the other.

    Attributes:
        extender: a Filter plugin more, as a peer of the webhook has one; None for none.
        waiting: the pods that fit nowhere, with the time since when.
        ignores_anti_affinity: a planted fault.
    """

    def __init__(self, engine: Engine, api: ApiServer) -> None:
        self.engine = engine
        self.api = api
        self.extender: Extender | None = None
        self.waiting: dict[str, float] = {}
        self.ignores_anti_affinity = False
        self._states: dict[str, NodeState] = {}
        self._attempts: dict[str, int] = {}
        self._rng = engine.rng("kube-scheduler")
        self._free_at = 0.0
        self._next_start = 0
        self._assumed: set[str] = set()
        api.listeners.append(self._changed)

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        if kind is Kind.NODE and value is not None:
            self._states.setdefault(key, NodeState(value))
            self._retry()
        if kind is not POD:
            return
        if value is None or value["status"].get("phase") in ("Succeeded", "Failed"):
            self.waiting.pop(key, None)
            self._assumed.discard(key)
            for state in self._states.values():
                if state.remove(key):
                    self._retry()
        elif not value["spec"].get("nodeName") and key not in self.waiting and key not in self._assumed:
            self._assumed.add(key)
            self._queue(key)

    def _queue(self, key: str, pause: float = 0.0) -> None:
        start = max(self._free_at, self.engine.now + pause) + self._rng.uniform(*_QUEUE_SECONDS)
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
        self.waiting.pop(key, None)
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
        scores = {
            name: self._states[name].score(wanted) + _AFFINITY_WEIGHT * (_MAX_SCORE * affinity[name] // most)
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
        if not self._states[name].fits(requests(pod)) or not oracle.admits(pod, node):
            return False
        if not self.ignores_anti_affinity and self._related(pod):
            situation = Situation(list(self.api.objects[Kind.NODE].values()), self._related(pod), _NAMESPACES, pod, name)
            if scheduler_model.refusals(situation, pinned=False):
                return False
        return self.extender is None or self.extender(pod, node)

    def _related(self, pod: Object) -> list[Object]:
        """Return the pods on nodes whose rules can be about this pod, or that its rules can be about: those of its VM."""
        uid = (pod["metadata"].get("labels") or {}).get("kubevirt.io/created-by")
        return [] if uid is None else [each for each in self.api.pods_of_vmi.get(uid, {}).values() if _is_there(each)]

    def _preference(self, preferred: Iterable[Object], name: str) -> int:
        labels = self.api.objects[Kind.NODE][name]["metadata"]["labels"]
        return sum(each["weight"] for each in preferred if oracle.term_matches(each["preference"], labels, name))


_NAMESPACES: Final = {"vms": {}}


def requests(pod: Object) -> Requests:
    """Return what the pod requests."""
    wanted = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    cpu, memory = wanted.get("cpu", "0m"), wanted.get("memory", "0Mi")
    return Requests(int(cpu.removesuffix("m")), int(memory.removesuffix("Mi")) * _MEBI)


def preferences(pod: Object) -> list[Object]:
    """Return the preferred terms of the pod's node affinity."""
    node_affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []


def _is_there(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _free(requested: int, has: int) -> int:
    return 0 if requested > has else (has - requested) * _MAX_SCORE // has


def _to_find(nodes: int) -> int:
    """schedule_one.go, numFeasibleNodesToFind."""
    if nodes < _MIN_FEASIBLE:
        return nodes
    percent = max(50 - nodes // 125, _MIN_PERCENT)
    return max(nodes * percent // 100, _MIN_FEASIBLE)


