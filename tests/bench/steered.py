"""The product on a control plane full of cold starts, and what may happen to nearly every node of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.objects import builders
from support.scenarios.admitting import until_watched
from uneven import UnevenNode

_WRITERS: Final = 4
_FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
_PROBE: Final = "probe"


@contextmanager
def webhook(installed: Installed) -> Iterator[None]:
    """The API server calls `serve`, whose caches are whole; at the end no call may have failed open."""
    with installed.serving() as server:
        until_watched(server)
        installed.enable()
        installed.until_called()
        yield
        installed.disable()
    assert installed.plane.api.metric(_FAIL_OPEN) == 0, "calls failed open"


@contextmanager
def cordoned(plane: ControlPlane, nodes: Sequence[UnevenNode]) -> Iterator[None]:
    """These nodes take no new pods, and everyone knows."""
    with _patched(plane, nodes, {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}):
        yield


@contextmanager
def full(plane: ControlPlane, nodes: Sequence[UnevenNode]) -> Iterator[None]:
    """These nodes have as many pods as their kubelets take, and everyone knows."""
    usual = plane.api.get(_named(nodes[0]))["status"]["allocatable"]["pods"]
    few, many = ({"status": {"allocatable": {"pods": pods}}} for pods in ("1", usual))
    with _patched(plane, nodes, few, many, subresource="status"):
        yield


@contextmanager
def _patched(
    plane: ControlPlane, nodes: Sequence[UnevenNode], change: Object, back: Object, *, subresource: str = ""
) -> Iterator[None]:
    with ThreadPoolExecutor(_WRITERS) as writers:
        for each in (change, back):
            list(writers.map(lambda node, to=each: plane.api.patch(_named(node), to, subresource=subresource), nodes))
            if each is change:
                _until_refused(plane, nodes[-1])
                yield


def _until_refused(plane: ControlPlane, node: UnevenNode) -> None:
    """Wait until the scheduler has said that a pod can't go there: it has heard the last news of all."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _PROBE, "namespace": builders.NAMESPACE},
        "spec": {
            "affinity": builders.node_affinity(required=[builders.on_node(node.name)]),
            "containers": [{"name": "probe", "image": "none"}],
        },
    }
    plane.api.create(pod)
    plane.api.wait_for(
        pod, lambda found: bool(found and found["status"].get("conditions")), what="the scheduler's word"
    )
    plane.api.delete(pod)


def _named(node: UnevenNode) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}}
