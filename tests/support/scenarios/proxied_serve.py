"""A `serve` that reads the cluster through a proxy, while the node of a share-manager changes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Self

from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api, Object
from support.drivers.serving import Serving
from support.fakes.proxy import Address, Proxy
from support.objects import builders, builders_pods
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.scenarios.admitting import Admission, admission_lines, admitted, caches, until, until_watched

from webhook.kube.informer.list_watch import HEALTHY_SECONDS

CLAIM: Final = "disk"
NODES: Final = ("node-a", "node-b", "node-c")
_VOLUME: Final = "pvc-disk"
_EXACT_TIMES: Final = 20


class MovingShareManager:
    """The share-manager's node, as the API server stores it: `node`.

    A context manager that deletes all objects at its end.
    """

    def __init__(self, api: Api) -> None:
        self._cluster = ClusterState(api)
        self._left_at: dict[str, float] = {}
        self.node = NODES[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.__exit__()

    def move(self, node: str) -> None:
        """Move the share-manager to this node as Longhorn does: with a new pod and a new ownerID."""
        before, self.node = self.node, node
        self._left_at.pop(node, None)
        manager = builders.share_manager(_VOLUME, state="running", ownerID=node)
        self._cluster.become([*_shelf(), manager, builders.share_manager_pod(_VOLUME, nodeName=node)])
        if node != before:
            self._left_at[before] = time.monotonic()

    def stale_seconds(self, admission: Admission) -> float:
        """Return how long ago the share-manager had left the node of a pin, in seconds; 0 if it is still there."""
        left = [admission.asked_at - self._left_at.get(node, admission.asked_at) for node in admission.required]
        return max([0.0, *left])


def _shelf() -> list[Object]:
    """What the VM's claim needs, except the share-manager and its pod; and an object of each other kind."""
    return [
        *map(builders.node, NODES),
        *(builders_pods.csi_node(name, {builders.LONGHORN_DRIVER: None}) for name in NODES),
        builders.persistent_volume_claim(CLAIM, volume_name="pv-disk"),
        builders.persistent_volume("pv-disk", claim=CLAIM, handle=_VOLUME),
        builders.cluster_autoscaler_status(),
        *map(builders.longhorn_node, NODES),
        virtual_machine("another", ()),
        virtual_machine_instance("another", ()),
    ]


class ProxiedServe(NamedTuple):
    """The program, its way to the API server, and the cluster that it should know."""

    plane: ControlPlane
    serving: Serving
    way: Proxy
    share_manager: MovingShareManager

    def asked(self) -> Admission:
        """A VM start pod, created and not kept."""
        return admitted(self.plane.api, CLAIM)

    def until_noticed(self) -> None:
        """Wait until every watch is known to be over."""
        until(lambda: not any(cache.watched for cache in caches(self.serving).values()), "trouble")

    def until_healthy(self) -> None:
        """Wait until every watch has been up for so long that it counts as health: the next fault starts a back-off."""
        until_watched(self.serving)
        [*_, last] = (line for line in self.serving.lines() if line["message"] == "cache synced")
        up = datetime.fromisoformat(last["time"])
        until(lambda: (datetime.now(UTC) - up).total_seconds() > HEALTHY_SECONDS, "health")

    def assert_well(self) -> None:
        """Wait until the caches follow the API server; then pods are pinned to the true node, and nothing is read."""
        until_watched(self.serving)
        logged = len(admission_lines(self.serving))
        required = [self.asked().required for _ in range(_EXACT_TIMES)]
        lines = admission_lines(self.serving)[logged:]
        assert required == [[self.share_manager.node]] * _EXACT_TIMES, lines
        assert [line.get("reads", 0) for line in lines] == [0] * _EXACT_TIMES


@contextmanager
def proxied_serve(installed: Installed, kubeconfig: Path) -> Iterator[ProxiedServe]:
    """A program that reads the API server through a proxy, by a copy of this kubeconfig."""
    plane = installed.plane
    with Proxy(Address("127.0.0.1", plane.port)) as way, MovingShareManager(plane.api) as share_manager:
        config = json.loads(kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{way.address.port}"
        kubeconfig.write_text(json.dumps(config))
        with installed.serving(cluster=("--kubeconfig", kubeconfig)) as serving:
            yield ProxiedServe(plane, serving, way, share_manager)
