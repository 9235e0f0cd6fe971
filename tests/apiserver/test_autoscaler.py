"""cluster-autoscaler is seen on a real API server, by the right of the install, and nothing else changes by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Api
from support.control_plane.rendering import NAME
from support.control_plane.rendering import installed as rendered
from support.drivers import serving
from support.objects.builders import cluster_autoscaler_status, longhorn_node, node
from support.scenarios.admitting import admitted, caches, until, until_watched

TITLE: Final = "cluster-autoscaler-status"
NAMES: Final = [f"more-{index:03}" for index in range(110)]
LIST_NODES: Final = 64
STATUS: Final = cluster_autoscaler_status()


@pytest.fixture(scope="module")
def large(installed: Installed) -> Iterator[Api]:
    """A cluster of more than 100 nodes whose API server calls the webhook."""
    with ClusterState(installed.plane.api) as cluster:
        cluster.become([*serving.cluster(), *map(node, NAMES), *map(longhorn_node, NAMES)])
        installed.enable()
        yield installed.plane.api
        installed.disable()


def listed(api: Api) -> int:
    """The size of the short list of a VM that asks for a preference."""
    return len(admitted(api, "disk", opt_in="preferred").required)


def test_short_lists_end_with_its_first_status_and_come_back_after_its_last(large: Api, installed: Installed) -> None:
    """The program is not restarted, and a new status every 10 s changes nothing."""
    with installed.serving() as server:
        installed.until_called()
        until_watched(server)
        until(lambda: listed(large) == LIST_NODES, "a short list")
        large.create(STATUS)
        try:
            until(lambda: listed(large) == 0, "no short list")
            large.replace({**STATUS, "data": {"status": "another"}})
            assert admitted(large, "disk").required == ["node-a"]
            assert listed(large) == 0
        finally:
            large.delete(STATUS)
        until(lambda: listed(large) == LIST_NODES, "a short list again")


def test_without_the_right_a_pin_stays_a_pin(large: Api, installed: Installed) -> None:
    """The rights are of an older version. The replica is ready, has no short lists, and says why."""
    role = next(each for each in rendered() if each["kind"] == "ClusterRole" and each["metadata"]["name"] == NAME)
    large.apply({**role, "rules": [each for each in role["rules"] if "configmaps" not in each["resources"]]})
    try:
        with installed.serving() as server:
            installed.until_called()
            until(lambda: "forbidden" in caches(server)[TITLE].detail, "the refusal")
            until(lambda: all(each.watched for name, each in caches(server).items() if name != TITLE), "other caches")
            assert admitted(large, "disk").required == ["node-a"]
            assert listed(large) == 0
            detail = caches(server)[TITLE].detail
            assert detail.startswith("not synced: forbidden: ")
            assert 'cannot list resource "configmaps"' in detail or 'cannot watch resource "configmaps"' in detail
            assert detail.endswith("(not required)")
            with serving.Client(server.health_port) as client:
                assert client.ask(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200
            large.apply(role)
            until(lambda: listed(large) == LIST_NODES, "a short list")
    finally:
        large.apply(role)


@pytest.fixture(scope="module")
def webhook(installed: Installed) -> Api:
    """The API server as the webhook's account sees it."""
    return installed.plane.as_user(installed.plane.service_account(NAME, NAME))


OF_AUTOSCALER: Final = {"fieldSelector": f"metadata.name={TITLE}"}


def test_the_webhook_lists_and_watches_the_status_of_cluster_autoscaler(webhook: Api, installed: Installed) -> None:
    """In all namespaces at once."""
    api = installed.plane.api
    there = [cluster_autoscaler_status(namespace) for namespace in ("default", "kube-system")]
    for each in there:
        api.create(each)
    try:
        found = webhook.items("v1", "ConfigMap", **OF_AUTOSCALER)
        assert sorted(each["metadata"]["namespace"] for each in found) == ["default", "kube-system"]
        with closing(webhook.watch("v1", "ConfigMap", seconds=5, **OF_AUTOSCALER)) as events:
            assert next(events)["object"]["metadata"]["name"] == TITLE
    finally:
        for each in there:
            api.delete(each)
