"""The model of nodes: kubelets, the node life cycle controller and cordon.

Upstream: kubernetes pkg/controller/nodelifecycle (40 s without a heartbeat, then the taint; pods with the default
tolerations are deleted 300 s later). A dead kubelet ends no pod: the pods go when the node is back, or when somebody
fences the node (the taint out-of-service).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from simulation.api_server import LONGHORN, POD, ApiServer, Object, is_over
from simulation.engine import Engine, rfc3339
from simulation.workload import MEMORY_GIB, NODES
from support.objects import builders

from webhook.core.view import Kind

NOT_READY_SECONDS: Final = 40.0  # --node-monitor-grace-period, before 1.32
EVICT_SECONDS: Final = 300.0  # tolerationSeconds that the API server adds to each pod
_FENCE_SECONDS: Final = (20.0, 60.0)  # after the eviction: an operator, or a fencing agent
_BOOT_SECONDS: Final = (20.0, 90.0)  # power to Ready
_INSTANCE_MANAGER_SECONDS: Final = (5.0, 60.0)  # Ready to a new instance-manager pod: assumed


@dataclass
class NodeLife:
    """What a node is now, and since when it is Ready (simulated seconds)."""

    alive: bool = True
    ready: bool = True
    cordoned: bool = False
    deaths: int = 0
    ready_since: float = 0.0


class Nodes:
    """All nodes.

    Attributes:
        died: called with a node at the moment of its death.
        pods_lost: called with a node when its pods are gone: fenced, or failed because the node is back.
        back: called with a node that is Ready again.
        cordon_changed: called with a node that was cordoned or uncordoned.
    """

    def __init__(self, engine: Engine, api: ApiServer) -> None:
        self.engine = engine
        self.api = api
        self.states = {f"node-{index:02}": NodeLife() for index in range(NODES)}
        self.died: list[Callable[[str], object]] = []
        self.pods_lost: list[Callable[[str], object]] = []
        self.back: list[Callable[[str], object]] = []
        self.cordon_changed: list[Callable[[str], object]] = []
        self._rng = engine.rng("nodes")

    def register(self) -> None:
        """Write all nodes."""
        for name in self.states:
            self._write(name)
            self.api.put(Kind.LONGHORN_NODE, builders.longhorn_node(name))
            self.api.put(POD, builders.instance_manager_pod(name))

    def usable(self, but: str = "") -> list[str]:
        """Return the nodes that are alive, Ready and not cordoned, except one."""
        return [n for n, s in self.states.items() if s.alive and s.ready and not s.cordoned and n != but]

    def cordon(self, name: str, *, cordoned: bool) -> None:
        """Cordon or uncordon a node."""
        state = self.states[name]
        state.cordoned = cordoned
        self._write(name)
        for listener in self.cordon_changed:
            listener(name)

    def die(self, name: str, *, fenced: bool = True) -> None:
        """The node loses its power or its network at once."""
        state = self.states[name]
        state.alive, state.deaths = False, state.deaths + 1
        death = state.deaths
        self.engine.trace(f"{name} died")
        for listener in self.died:
            listener(name)
        self.api.act(NOT_READY_SECONDS, lambda: self._unready(name, death))
        self.api.act(NOT_READY_SECONDS + EVICT_SECONDS, lambda: self._evict(name, death))
        if fenced:
            pause = NOT_READY_SECONDS + EVICT_SECONDS + self._rng.uniform(*_FENCE_SECONDS)
            self.api.act(pause, lambda: self._lose_pods(name, death))

    def revive(self, name: str) -> None:
        """The node has power again; it is Ready once it has booted."""

        def ready() -> None:
            state = self.states[name]
            if state.alive:
                return
            if not state.ready:
                state.ready_since = self.engine.now
            state.alive, state.ready = True, True
            self._write(name)
            self.api.put(Kind.LONGHORN_NODE, builders.longhorn_node(name))
            self.api.delete(POD, instance_manager_key(name))
            pause = self._rng.uniform(*_INSTANCE_MANAGER_SECONDS)
            self.api.act(pause, lambda: self.api.put(POD, builders.instance_manager_pod(name)))
            for listener in (*self.pods_lost, *self.back):
                listener(name)

        self.api.act(self._rng.uniform(*_BOOT_SECONDS), ready)

    def pods_on(self, name: str) -> list[tuple[str, Object]]:
        """Return the pods that are bound to the node and not finished, by their keys."""
        return [
            (k, p) for k, p in self.api.objects[POD].items() if p["spec"].get("nodeName") == name and not is_over(p)
        ]

    def _unready(self, name: str, death: int) -> None:
        if self._is_dead(name, death):
            self.states[name].ready = False
            self._write(name)
            self.api.put(Kind.LONGHORN_NODE, builders.longhorn_node(name, ready="False"))

    def _evict(self, name: str, death: int) -> None:
        for _, pod in self.pods_on(name) if self._is_dead(name, death) else ():
            if "deletionTimestamp" not in pod["metadata"]:
                self.api.put(POD, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": self.engine.timestamp}})

    def _lose_pods(self, name: str, death: int) -> None:
        if self._is_dead(name, death):
            for listener in self.pods_lost:
                listener(name)

    def _is_dead(self, name: str, death: int) -> bool:
        state = self.states[name]
        return not state.alive and state.deaths == death

    def _write(self, name: str) -> None:
        state = self.states[name]
        node = builders.node(
            name,
            ready="True" if state.ready else "Unknown",
            cordoned=state.cordoned,
            allocatable={"cpu": "32", "memory": f"{MEMORY_GIB}Gi"},
            labels={"kubernetes.io/hostname": name},
        )
        (ready,) = (each for each in node["status"]["conditions"] if each["type"] == "Ready")
        ready["lastTransitionTime"] = rfc3339(int(state.ready_since))
        self.api.put(Kind.NODE, node)


def instance_manager_key(node: str) -> str:
    """Return NAMESPACE/NAME of Longhorn's instance-manager pod on a node. Longhorn recreates it after a boot."""
    return f"{LONGHORN}/instance-manager-{node}"
