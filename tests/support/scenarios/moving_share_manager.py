"""A cluster in which the node of a share-manager changes, and how old the node was on which a pin rests."""

from __future__ import annotations

import time
from typing import Final, Self

from support.control_plane.cluster_state import ClusterState
from support.control_plane.kube_api import Api, Object
from support.objects import builders, builders_pods
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.scenarios.admitting import Admission

CLAIM: Final = "disk"
NODES: Final = ("node-a", "node-b", "node-c")
_VOLUME: Final = "pvc-disk"


def _shelf() -> list[Object]:
    """What the VM's claim needs, except the share-manager and its pod; and an object of each other kind."""
    return [
        *map(builders.node, NODES),
        *map(_csi_node, NODES),
        builders.persistent_volume_claim(CLAIM, volume_name="pv-disk"),
        builders.persistent_volume("pv-disk", claim=CLAIM, handle=_VOLUME),
        builders.cluster_autoscaler_status(),
        *map(builders.longhorn_node, NODES),
        virtual_machine("another", ()),
        virtual_machine_instance("another", ()),
    ]


def _csi_node(name: str) -> Object:
    """The CSINode of a node with Longhorn's driver."""
    return builders_pods.csi_node(name, {builders.LONGHORN_DRIVER: None})


class MovingShareManager:
    """The share-manager's node, as the API server stores it: `node`.

    A context manager that deletes all objects at its end.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._cluster = ClusterState(api)
        self._left_at: dict[str, float] = {}
        self._objects: list[Object] = []
        self._touched = 0
        self.node = NODES[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.__exit__()

    def settle(self) -> None:
        """Create all objects, with the share-manager on the first node."""
        self.move(NODES[0])

    def touch(self) -> None:
        """Change a label that no program reads in every object, so that every watch gets an event."""
        self._touched += 1
        for described in (*self._objects, builders.labeled_namespace(label=None)):
            self._api.patch(described, {"metadata": {"labels": {"touched": str(self._touched)}}})

    def move(self, node: str) -> None:
        """Move the share-manager to this node as Longhorn does: with a new pod and a new ownerID."""
        before, self.node = self.node, node
        self._left_at.pop(node, None)
        manager = builders.share_manager(_VOLUME, state="running", ownerID=node)
        pod = builders.share_manager_pod(_VOLUME, nodeName=node)
        self._objects = [*_shelf(), manager, pod]
        self._cluster.become(self._objects)
        if node != before:
            self._left_at[before] = time.monotonic()

    def stale_seconds(self, admission: Admission) -> float:
        """Return how long ago the share-manager had left the node of a pin, in seconds; 0 if it is still there."""
        left = [admission.asked_at - self._left_at.get(node, admission.asked_at) for node in admission.required]
        return max([0.0, *left])
