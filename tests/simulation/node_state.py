"""NodeState: what a node has for pods and what its pods request, as kube-scheduler filters and scores by it.

Upstream: pkg/scheduler/framework/plugins/noderesources (fit.go, least_allocated.go, balanced_allocation.go).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from simulation.api_server import Object

MAX_SCORE: Final = 100
_DEFAULT_MILLI_CPU: Final = 100  # pkg/scheduler/util/pod_resources.go: what a pod without requests scores as
_DEFAULT_MEMORY: Final = 200 * 1024**2
_MEBI: Final = 1024**2


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
        return least + int((1 - apart) * MAX_SCORE)

    def _sum(self, pod: Requests, sign: int) -> None:
        scored = pod.scored
        self.requested = Requests(self.requested.cpu + sign * pod.cpu, self.requested.memory + sign * pod.memory)
        self._scored = Requests(self._scored.cpu + sign * scored.cpu, self._scored.memory + sign * scored.memory)


def requests(pod: Object) -> Requests:
    """Return what the pod requests."""
    wanted = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    cpu, memory = wanted.get("cpu", "0m"), wanted.get("memory", "0Mi")
    return Requests(int(cpu.removesuffix("m")), int(memory.removesuffix("Mi")) * _MEBI)


def _free(requested: int, has: int) -> int:
    return 0 if requested > has else (has - requested) * MAX_SCORE // has
