"""Checks of pods and nodes: stranded, room, one pod of a VM on a node.

A pod that our terms keep waiting is stranded. Excepted is a pod one of whose nodes has changed since the evidence was
read: it was cordoned or lost, or was filled by a pod of which the webhook could not know. Such a pod is freed by the
rule of issue 15 for stuck VMs; `World.freed_by_nobody` counts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from simulation.admission import entry_title
from simulation.api_server import POD, Object, is_virt_launcher
from simulation.check_answers import STALE_SECONDS, Breaks, required_nodes

from webhook.core.view import Kind

if TYPE_CHECKING:
    from simulation.world import World

STRANDED_SECONDS: Final = 60.0  # issue 15, section 3: so long until a stuck VM is freed
_LOOK_SECONDS: Final = 2.0
_LIVE: Final = ("Pending", "Running")


class NodeChecks:
    """Checks pods that wait, and pods that were bound."""

    def __init__(self, world: World, broken: Breaks, asked: Mapping[str, tuple[float, Object]]) -> None:
        self.world = world
        self.broken = broken
        self._asked = asked
        self._node_changed: dict[str, float] = {}
        self._judged: set[str] = set()
        self._fits_since: dict[str, float] = {}
        self._looked_at = 0.0
        world.api.listeners.append(self._changed)

    def step(self) -> None:
        """Look at every pod that waits, each few seconds; judge one that could have been elsewhere for long enough."""
        now = self.world.engine.now
        if not self.world.scheduler.waiting or now < self._looked_at + _LOOK_SECONDS:
            return
        self._looked_at = now
        for key in list(self.world.scheduler.waiting):
            others = self._others(key)
            if not others:
                self._fits_since.pop(key, None)
            elif now - self._fits_since.setdefault(key, now) > STRANDED_SECONDS and key not in self._judged:
                self._judged.add(key)
                self._judge(key, others)

    def _changed(self, kind: Kind, key: str, value: Object | None) -> None:
        if kind is Kind.NODE:
            self._node_changed[key] = self.world.engine.now
        elif kind is POD and value is not None and value["spec"].get("nodeName") and is_virt_launcher(value):
            self._room(value)

    def _others(self, key: str) -> list[str]:
        """Return the nodes that would take a waiting pod without our requirement; none if it has none of ours."""
        pod = self.world.api.pod(key)
        if pod is None or entry_title(pod) != "virt-launcher":
            return []
        _, before = self._asked.get(self.world.virt.vm_of(pod).uid, (0.0, pod))
        if required_nodes(pod) == required_nodes(before):
            return []
        return self.world.scheduler.feasible({**before, "metadata": pod["metadata"]})

    def _judge(self, key: str, others: list[str]) -> None:
        pod = self.world.api.pod(key)
        assert pod is not None
        vm, nodes = self.world.virt.vm_of(pod), required_nodes(pod)
        asked_at, _ = self._asked[vm.uid]
        if any(self._node_changed.get(node, 0.0) >= asked_at - STALE_SECONDS for node in nodes):
            self.world.freed_by_nobody += 1
            return
        since = self._fits_since[key]
        raise self.broken(
            "stranded", f"{vm.name} waits for {sorted(nodes)}; since {since:.0f} it would fit on {others}"
        )

    def _room(self, pod: Object) -> None:
        node = pod["spec"]["nodeName"]
        state = self.world.scheduler.state(node)
        if state.requested.memory > state.has.memory or state.requested.cpu > state.has.cpu:
            raise self.broken("room", f"{node} has {state.requested} requested of {state.has}")
        vm = self.world.virt.vm_of(pod)
        pods = self.world.api.pods_of_vmi[vm.uid].values() if vm.uid in self.world.api.pods_of_vmi else ()
        here = [each for each in pods if each["spec"].get("nodeName") == node and each["status"].get("phase") in _LIVE]
        if len(here) > 1:
            raise self.broken("one", f"{len(here)} pods of {vm.name} are on {node}")
