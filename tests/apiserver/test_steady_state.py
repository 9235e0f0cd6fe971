"""What an admission costs the API server, by its own count of requests: nothing, once the caches are up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api
from support.drivers import serving
from support.drivers.serving import Serving
from support.scenarios.admitting import admission_lines, admitted, until, until_watched

PODS: Final = 200
_REQUEST: Final = re.compile(r"apiserver_request_total\{(.*)\} (\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_READING: Final = ("GET", "LIST")  # a WATCH, anybody's, is counted when it ends
_RESOURCES: Final = ("persistentvolumeclaims", "persistentvolumes", "nodes", "pods", "sharemanagers")


@pytest.fixture(scope="module")
def steady(installed: Installed) -> Iterator[Serving]:
    """The program, with its caches up."""
    installed.enable()
    with ClusterState(installed.plane.api) as cluster, installed.serving() as server:
        cluster.become(serving.cluster())
        installed.until_called()
        until_watched(server)
        until(lambda: admitted(installed.plane.api, "disk").required == ["node-a"], "a pin")
        yield server
    installed.disable()


def reads(api: Api) -> Counter[tuple[str, str, str]]:
    """How often what we read was read, by anyone: (verb, API group, resource) -> requests."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for line in api.text("/metrics").splitlines():
        if sample := _REQUEST.fullmatch(line):
            labels = dict(_LABEL.findall(sample[1]))
            if labels["verb"] in _READING and labels["resource"] in _RESOURCES:
                counted[labels["verb"], labels["group"], labels["resource"]] += int(float(sample[2]))
    return counted


def test_an_admission_reads_nothing(steady: Serving, installed: Installed) -> None:
    """200 pods are placed from memory: the API server has no GET or LIST more, and the log says `reads` 0."""
    api = installed.plane.api
    lines, before = len(admission_lines(steady)), reads(api)
    pods = [admitted(api, "disk", "data", "state", opt_in="required") for _ in range(PODS)]
    more = reads(api) - before
    logged = admission_lines(steady)[lines:]
    assert more == Counter()
    assert [pod.required for pod in pods] == [["node-a", "node-b"]] * PODS
    assert [line.get("reads", 0) for line in logged] == [0] * PODS


def test_a_cold_start_reads_nothing(steady: Serving, installed: Installed) -> None:
    """A share-manager that is on no node has no pod: nobody is asked for one."""
    before = reads(installed.plane.api)
    assert "ShareManagerNoNode" in admitted(installed.plane.api, "stopped").decision
    assert reads(installed.plane.api) - before == Counter()
    assert admission_lines(steady)[-1].get("reads", 0) == 0


def test_a_miss_reads_once(steady: Serving, installed: Installed) -> None:
    """A claim that no cache has is one GET, and this count sees it."""
    before = reads(installed.plane.api)
    assert "ClaimNotFound" in admitted(installed.plane.api, "unheard-of").decision
    assert reads(installed.plane.api) - before == Counter({("GET", "", "persistentvolumeclaims"): 1})
    assert admission_lines(steady)[-1]["reads"] == 1
