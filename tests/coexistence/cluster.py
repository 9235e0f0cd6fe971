"""A control plane with the webhook from its manifests, and pods that come out of it in a wanted form."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from coexistence.forms import Form, node
from controlplane import build
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.scheduled import is_judged
from support.control_plane.vm_starts import NODES, Starting, decision
from support.objects import builders
from support.scenarios.admitting import until, until_watched

VERSION: Final = build.KUBERNETES[build.NEWEST].version
FEW: Final = 16  # nodes, of most rows
MANY: Final = 110  # nodes: above 100 the webhook writes short lists
WAIT_SECONDS: Final = 30
_POLL_SECONDS: Final = 0.1


class Cluster:
    """What the rows are seen on. Everything that was described or created is gone after `clear`."""

    def __init__(self, plane: ControlPlane, installed: Installed, state: ClusterState) -> None:
        self.plane, self._installed, self._state = plane, installed, state
        self.api = plane.api
        self._starting = Starting(plane.api)

    @contextmanager
    def webhook(self, *flags: str) -> Iterator[None]:
        """The webhook is on, with these flags of `serve`."""
        with self._installed.serving(*flags) as server:
            until_watched(server)
            self._installed.enable()
            try:
                self._installed.until_called()
                yield
            finally:
                self._installed.disable()

    def become(self, objects: Iterable[Object]) -> None:
        """Make the cluster be these objects, from nothing."""
        self.clear()
        self._state.become(objects)

    def clear(self) -> None:
        """Delete what was described or created."""
        self._state.become(())
        self._starting.clear()

    def create(self, form: Form, **spec: Any) -> Object:
        """A pod in this form, as soon as the webhook gives it the form.

        Raises:
            TimeoutError: it does not; says what the annotation says instead.
        """
        pod = form.pod(**spec)

        def tried() -> Object:
            return self.api.create(pod, dryRun="All")

        until(lambda: form.made(tried()), lambda: f"{form.title}: {decision(tried())}", seconds=WAIT_SECONDS)
        created = self.api.create(pod)
        assert form.made(created), decision(created)
        return created

    def bind(self, pod: Object, on: str) -> None:
        """What a scheduler does that has chosen this node."""
        meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": on}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        self.api.call("POST", self.api.path(pod, "binding"), binding)

    def placed(self, pod: Object) -> str:
        """The node that a scheduler binds the pod to; empty if it says that there is none."""
        until(lambda: is_judged(self.api.get(pod)), f"a scheduler's word on {pod['metadata']['name']}")
        found: str = self.api.get(pod)["spec"].get("nodeName", "")
        return found

    def evicted(self, pod: Object) -> bool:
        """Whether somebody has deleted or evicted the pod. Without kubelets an evicted pod stays Terminating."""
        found = self.api.find(pod)
        return not found or "deletionTimestamp" in found["metadata"]


def nodes(count: int) -> list[Object]:
    """So many nodes: those of `vm_starts` and others."""
    names = [*NODES, *(f"node-{number:03}" for number in range(count - len(NODES)))]
    return [each for name in names for each in node(name)]


def within(seconds: float, happened: Any) -> bool:
    """Whether something happens in this time."""
    deadline = time.monotonic() + seconds
    while not (found := happened()) and time.monotonic() < deadline:
        threading.Event().wait(_POLL_SECONDS)
    return bool(found)


@contextmanager
def running(directory: Path) -> Iterator[Cluster]:
    """A control plane with the webhook installed, and not switched on yet."""
    with ExitStack() as here:
        plane = here.enter_context(ControlPlane(directory))
        (directory / "installed").mkdir()
        installed = Installed(plane, directory / "installed")
        cluster = Cluster(plane, installed, here.enter_context(ClusterState(plane.api)))
        here.callback(cluster.clear)
        for namespace in (builders.NAMESPACE, builders.LONGHORN_NAMESPACE):
            plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        yield cluster
