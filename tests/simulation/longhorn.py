"""The model of Longhorn: tickets, share-managers and their pods.

Upstream: longhorn-manager controller/share_manager_controller.go and volume_attachment_controller.go. The times were
measured with Longhorn's own controllers:

- from a ticket to the pod 0-30 s (a resync or an event of the Volume);
- from the last ticket to the stop 0-30 s, and from a node's death to the fail-over 6-7 s;
- ownerID follows the pod within 4-32 ms, leaves a cordoned node in 6-24 s, and is back within 30 s of uncordon.
- a live share-manager pod stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from simulation.admission import Creation
from simulation.api_server import POD, SHARE_MANAGER, ApiServer, Object
from simulation.engine import Engine
from simulation.nodes import Nodes
from support.objects import builders

from webhook.core.view import Kind

RESYNC_SECONDS: Final = (0.0, 30.0)
_OWNER_SECONDS: Final = (0.004, 0.032)
_LEAVE_OWNER_SECONDS: Final = (6.0, 24.0)
_RETURN_OWNER_SECONDS: Final = (0.0, 30.0)
_FAILOVER_SECONDS: Final = (6.0, 7.0)
_START_SECONDS: Final = (2.0, 6.0)  # bound to Running: image there, NFS server up
_END_SECONDS: Final = (1.0, 5.0)  # a pod that terminates


@dataclass
class Volume:
    """One volume and its share-manager.

    Attributes:
        tickets: the node that each pod wants the volume on, by the pod's key.
        due: a pod is to be created, or is being created.
    """

    name: str
    tickets: dict[str, str] = field(default_factory=dict)
    state: str = "stopped"
    owner: str = ""
    due: bool = False

    @property
    def pod_key(self) -> str:
        """NAMESPACE/NAME of its pod."""
        return SHARE_MANAGER + self.name


class Longhorn:
    """All volumes."""

    def __init__(self, engine: Engine, api: ApiServer, nodes: Nodes, creation: Creation) -> None:
        self.engine = engine
        self.api = api
        self.nodes = nodes
        self.creation = creation
        self.volumes: dict[str, Volume] = {}
        self._rng = engine.rng("longhorn")
        api.listeners.append(self._changed)

    def add(self, name: str) -> None:
        """Add a volume that nothing uses yet; its ownerID is one of the nodes."""
        volume = self.volumes[name] = Volume(name, owner=self._rng.choice(list(self.nodes.states)))
        self._write(volume)
        self._write_tickets(volume)

    def pod(self, name: str) -> Object | None:
        """Return the share-manager pod of the volume."""
        return self.api.pod(self.volumes[name].pod_key)

    def serves(self, name: str) -> bool:
        """Whether the volume's share-manager runs."""
        pod = self.pod(name) or {"metadata": {}, "status": {}}
        return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]

    # Tickets.

    def attach(self, name: str, pod_key: str, node: str) -> None:
        """Store a ticket: the attach-detach controller and the CSI attacher want the volume on the node."""
        volume = self.volumes[name]
        volume.tickets[pod_key] = node
        self._write_tickets(volume)
        self._need(volume, self._rng.uniform(*RESYNC_SECONDS))

    def detach(self, name: str, pod_key: str) -> None:
        """Remove a ticket; without any the share-manager stops at the next resync."""
        volume = self.volumes[name]
        if volume.tickets.pop(pod_key, None) is not None:
            self._write_tickets(volume)
            self.api.act(self._rng.uniform(*RESYNC_SECONDS), lambda: self._stop(volume))

    # Pods.

    def evict(self, volume: Volume) -> None:
        """A drain evicts the share-manager pod: it ends, and Longhorn makes another while a ticket is there."""
        self._end(volume, lambda: self._need(volume, self._rng.uniform(*RESYNC_SECONDS)))

    def node_died(self, node: str) -> None:
        """Fail over the share-managers of a dead node, by a manager on another one."""
        for volume in self.volumes.values():
            if self.node_of(volume) == node:
                seconds = self._rng.uniform(*_FAILOVER_SECONDS)
                self.api.act(seconds, lambda volume=volume: self._fail_over(volume, node))

    def node_is_back(self, node: str) -> None:
        """The pods of a node that was off have failed; managers clean up and go on where a ticket is left."""
        for volume in self.volumes.values():
            if self.node_of(volume) == node:
                self.api.delete(POD, volume.pod_key)
                self._set(volume, "error")
                self._need(volume, self._rng.uniform(*RESYNC_SECONDS))

    def cordon_changed(self, node: str) -> None:
        """The ownerID leaves a cordoned node, and is back after uncordon; the pod stays."""
        cordoned = self.nodes.states[node].cordoned
        times = _LEAVE_OWNER_SECONDS if cordoned else _RETURN_OWNER_SECONDS
        for volume in self.volumes.values():
            home = self.node_of(volume) or volume.owner
            if home == node:
                self.api.act(self._rng.uniform(*times), lambda volume=volume: self._flip(volume, node))

    def _flip(self, volume: Volume, node: str) -> None:
        if not self.nodes.states[node].cordoned:
            if self.node_of(volume) == node:
                self._set(volume, volume.state, node)
        elif volume.owner == node and (others := self.nodes.usable(but=node)):
            self._set(volume, volume.state, self._rng.choice(others))

    def _fail_over(self, volume: Volume, node: str) -> None:
        if self.node_of(volume) != node or self.nodes.states[node].alive or not self.nodes.usable(but=node):
            return
        self.api.delete(POD, volume.pod_key)
        self._set(volume, "error")
        self._need(volume, 0.0)

    def _need(self, volume: Volume, seconds: float) -> None:
        if not volume.due:
            volume.due = True
            self.api.act(seconds, lambda: self._make(volume))

    def _make(self, volume: Volume) -> None:
        if not volume.tickets or self.api.pod(volume.pod_key) is not None or not self.nodes.usable():
            volume.due = False
            if volume.tickets and self.api.pod(volume.pod_key) is None:
                self._need(volume, RESYNC_SECONDS[1])
            return
        self.creation.create(builders.share_manager_pod(volume.name, phase=None), lambda _: self._made(volume))

    def _made(self, volume: Volume) -> None:
        volume.due = False
        self._set(volume, "starting")

    def _stop(self, volume: Volume) -> None:
        if not volume.tickets and self.api.pod(volume.pod_key) is not None:
            self._end(volume, lambda: None)

    def _end(self, volume: Volume, then: Callable[[], object]) -> None:
        pod = self.api.pod(volume.pod_key)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        self._set(volume, "stopping")
        self.api.put(POD, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": self.engine.timestamp}})

        def gone() -> None:
            self.api.delete(POD, volume.pod_key)
            self._set(volume, "stopped")
            then()
            if volume.tickets:
                self._need(volume, self._rng.uniform(*RESYNC_SECONDS))

        self.api.act(self._rng.uniform(*_END_SECONDS), gone)

    def _changed(self, kind: Kind, key: str, pod: Object | None) -> None:
        if kind is not POD or pod is None or not key.startswith(SHARE_MANAGER):
            return
        volume = self.volumes[key.removeprefix(SHARE_MANAGER)]
        node = pod["spec"].get("nodeName")
        if node and pod["status"].get("phase") == "Pending":
            uid = pod["metadata"]["uid"]
            self.api.act(self._rng.uniform(*_OWNER_SECONDS), lambda: self._set(volume, volume.state, node))
            self.api.act(self._rng.uniform(*_START_SECONDS), lambda: self._run(volume, uid))

    def _run(self, volume: Volume, uid: str) -> None:
        pod = self.api.pod(volume.pod_key)
        if pod is None or pod["metadata"]["uid"] != uid or "deletionTimestamp" in pod["metadata"]:
            return
        node = pod["spec"]["nodeName"]
        if pod["status"].get("phase") == "Pending" and self.nodes.states[node].alive:
            self.api.put(POD, {**pod, "status": {**pod["status"], "phase": "Running"}})
            self._set(volume, "running")

    def node_of(self, volume: Volume) -> str:
        """Return the node of the share-manager pod; empty for none."""
        pod = self.api.pod(volume.pod_key)
        return (pod["spec"].get("nodeName") or "") if pod else ""

    def _set(self, volume: Volume, state: str, owner: str = "") -> None:
        if (volume.state, volume.owner) != (state, owner or volume.owner):
            volume.state, volume.owner = state, owner or volume.owner
            self._write(volume)

    def _write(self, volume: Volume) -> None:
        self.api.put(Kind.SHARE_MANAGER, builders.share_manager(volume.name, state=volume.state, ownerID=volume.owner))

    def _write_tickets(self, volume: Volume) -> None:
        tickets = [("csi-attacher", node) for node in volume.tickets.values()]
        if tickets:
            tickets.append(("share-manager-controller", volume.owner))
        self.api.put(Kind.VOLUME_ATTACHMENT, builders.volume_attachment(volume.name, tickets))
