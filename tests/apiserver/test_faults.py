"""A real API server is restarted, also with a past that it has forgotten, while the cluster changes.

What must hold throughout: no pod is pinned hard by a fact that had changed longer ago than the caches promise, and
none at all once they are back. Faults of connections are tested against a scripted server.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Self

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Api, Object
from support.drivers.serving import Serving
from support.fakes.proxy import Address, Proxy
from support.objects import builders, builders_pods
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.scenarios.admitting import Admission, Admitting, admission_lines, admitted, caches, until, until_watched

from webhook.kube.informer.connection import STALE_AFTER_SECONDS
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


_SLACK_SECONDS: Final = 5.0  # from when a fact has changed until the API server has told it, on a busy machine


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The webhook on a control plane of its own, without a scheduler.

    When the API server is killed, kube-scheduler finds pods on other nodes than its cache has, and exits.
    """
    directory = tmp_path_factory.mktemp("faults")
    with ControlPlane(directory, scheduler=False) as plane:
        yield Installed(plane, directory)


@pytest.fixture(scope="module")
def running(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedServe]:
    """The program, its calls made."""
    account = installed.plane.service_account(NAME, NAME)
    kubeconfig = installed.plane.kubeconfig(tmp_path_factory.mktemp("program") / "kubeconfig", account)
    installed.enable()
    with proxied_serve(installed, kubeconfig) as running:
        installed.until_called()
        yield running
    installed.disable()


@pytest.fixture
def well(running: ProxiedServe) -> Iterator[ProxiedServe]:
    """The program, knowing the cluster as it is, with a good way to it; that is good again afterwards."""
    running.share_manager.move(NODES[0])
    running.until_healthy()
    until(lambda: running.asked().required == [running.share_manager.node], "a pin")
    yield running
    running.way.thaw()


def assert_none_too_old(program: ProxiedServe, admissions: list[Admission]) -> None:
    """No pin rests on what had changed longer ago than the promise."""
    oldest = max(admissions, key=program.share_manager.stale_seconds)
    assert program.share_manager.stale_seconds(oldest) <= STALE_AFTER_SECONDS + _SLACK_SECONDS, oldest


def test_an_api_server_that_restarts(well: ProxiedServe) -> None:
    """What changes before and after is known when the watches are back, and until then it is read."""
    with Admitting(well.plane.api, CLAIM) as admitting:
        well.share_manager.move("node-b")
        well.plane.stop_api_server(signal.SIGTERM)
        well.until_noticed()
        well.plane.start_api_server()
        well.share_manager.move("node-c")
        until_watched(well.serving)
    well.assert_well()
    assert_none_too_old(well, admitting.admissions)


def test_an_api_server_that_dies_and_has_forgotten(well: ProxiedServe) -> None:
    """It is killed while we are away, and its past is compacted: the watches get a 410, and lists tell the truth."""
    logged = len(well.serving.lines())
    with Admitting(well.plane.api, CLAIM) as admitting:
        well.way.freeze()
        well.way.cut()
        well.share_manager.move("node-b")
        well.plane.stop_api_server(signal.SIGKILL)
        well.plane.compact()
        well.plane.start_api_server()
        well.share_manager.move("node-c")
        well.until_noticed()
        well.way.thaw()
        until_watched(well.serving)
    well.assert_well()
    assert_none_too_old(well, admitting.admissions)
    problems = [line["problem"] for line in well.serving.lines()[logged:] if "problem" in line]
    assert any(problem.startswith("expired: 410 ") for problem in problems), problems
