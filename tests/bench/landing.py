"""Pods that a real scheduler is given: where each landed, what that cost, and why one did not land where it should."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Final, NamedTuple

from controlplane.build import programs
from process import cpu_seconds
from support.control_plane.control_plane import NEWEST, ControlPlane
from support.control_plane.control_plane_flags import SCHEDULER_FLAGS
from support.control_plane.kube_api import Api, Object
from support.control_plane.programs import Program
from support.objects import builders

_SELECTED: Final = {"labelSelector": "longhorn.io/component=share-manager"}
_PODS: Final = f"/api/v1/namespaces/{builders.LONGHORN_NAMESPACE}/pods"
_PATIENCE_SECONDS: Final = 120
_WRITERS: Final = 4
_STATUS_AT_CREATION: Final = ("Node", "v1"), ("Pod", "v1")

_PLUGIN_SCORE: Final = re.compile(
    r'"Plugin scored node for pod" pod="[^/"]*/(?P<pod>[^"]*)" plugin="(?P<plugin>\w+)" '
    r'node="(?P<node>[^"]*)" score=(?P<score>-?\d+)'
)
Scores = Mapping[str, Mapping[str, int]]
"""Node -> plugin -> score, its weight counted in."""


class Landed(NamedTuple):
    """Where some pods are after kube-scheduler, by their names."""

    stored: dict[str, Object]
    nodes: dict[str, str]
    """Without those that are Pending."""
    pending: dict[str, str]
    """What the scheduler says about it."""
    cpu_seconds: float
    """What the scheduler worked for all of them."""


def write(api: Api, objects: Iterable[Object]) -> None:
    """Create them, with their status."""
    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(lambda each: _write(api, each), objects))


def _write(api: Api, described: Object) -> None:
    created = api.create(described)
    if described.get("status") and (described["kind"], described["apiVersion"]) not in _STATUS_AT_CREATION:
        api.replace_status({**created, "status": described["status"]})


def land(plane: ControlPlane, pods: Iterable[Object]) -> Landed:
    """Create the share-manager pods, wait for the scheduler's first word on each, and delete them."""
    assert plane.scheduler, "a control plane without a scheduler"
    began = cpu_seconds(plane.scheduler.pid)
    with ThreadPoolExecutor(_WRITERS) as writers:
        stored = {each["metadata"]["name"]: each for each in writers.map(plane.api.create, pods)}
    nodes, pending = _verdicts(plane.api, set(stored))
    worked = cpu_seconds(plane.scheduler.pid) - began
    plane.api.call("DELETE", _PODS, None, {"gracePeriodSeconds": "0", **_SELECTED})
    return Landed(stored, nodes, pending, worked)


def _verdicts(api: Api, names: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    nodes: dict[str, str] = {}
    pending: dict[str, str] = {}
    for pod in _seen(api):
        name = pod["metadata"]["name"]
        if node := pod["spec"].get("nodeName"):
            nodes[name] = node
            pending.pop(name, None)
        elif why := _unschedulable(pod):
            pending[name] = why
        if nodes.keys() | pending.keys() == names:
            return nodes, pending
    raise AssertionError(f"no word in {_PATIENCE_SECONDS} s on {len(names - nodes.keys() - pending.keys())} pods")


def _seen(api: Api) -> Iterator[Object]:
    """The pods, and each change of one: an API server ends the watch of somebody who is slow."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (left := int(deadline - time.monotonic())) > 0:
        there = api.call("GET", _PODS, None, _SELECTED).body
        yield from there["items"]
        since = {"resourceVersion": there["metadata"]["resourceVersion"], **_SELECTED}
        with closing(api.watch("v1", "Pod", builders.LONGHORN_NAMESPACE, seconds=left, **since)) as events:
            yield from (event["object"] for event in events if event["type"] != "ERROR")


def _unschedulable(pod: Object) -> str | None:
    for condition in pod["status"].get("conditions", ()):
        if (condition["type"], condition["status"]) == ("PodScheduled", "False"):
            return str(condition.get("message"))
    return None


class Telling:
    """The control plane's kube-scheduler, restarted so that it logs the scores of every node that it scores."""

    def __init__(self, plane: ControlPlane) -> None:
        assert plane.scheduler, "a control plane without a scheduler"
        plane.scheduler.stop()
        self._plane, self._log = plane, plane.directory / "scores.log"
        flags = [f"--config={plane.directory / 'kube-scheduler.yaml'}", *SCHEDULER_FLAGS, "--vmodule=schedule_one=10"]
        plane.scheduler = Program(programs(NEWEST)["kube-scheduler"], flags, self._log)
        plane.scheduler.start()

    def land(self, pods: Iterable[Object]) -> tuple[Landed, Mapping[str, Scores]]:
        """As `land`, and by pod the scores."""
        read = self._log.stat().st_size
        landed = land(self._plane, pods)
        scores: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        with self._log.open() as lines:
            lines.seek(read)
            for found in filter(None, map(_PLUGIN_SCORE.search, lines)):
                scores[found["pod"]][found["node"]][found["plugin"]] = int(found["score"])
        return landed, scores
