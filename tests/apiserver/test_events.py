"""Events on a real control plane: `kubectl describe vmi` tells a VM's story."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from support.control_plane import vm_events
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubectl import Kubectl
from support.control_plane.vm_events import clear, events, written
from support.control_plane.vm_starts import Start, Starting, nodes
from support.drivers.serving import Serving
from support.objects.builders import LONGHORN_API_VERSION, LONGHORN_NAMESPACE, NAMESPACE
from support.scenarios.admitting import admitted, until, until_watched

VM: Final = Start("db01")
INSTANCE: Final = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": VM.vm, "namespace": NAMESPACE},
}


class Story(NamedTuple):
    """What a VM went through, and who was there."""

    installed: Installed
    server: Serving
    instance: Object
    node: str


@pytest.fixture(scope="module")
def granted(installed: Installed) -> Iterator[list[Object]]:
    """The right to create events."""
    with vm_events.granted(installed) as added:
        yield added


def start(starting: Starting, instance: Object, run: str) -> Object:
    """A run of the VM: the pod that its VirtualMachineInstance owns."""
    pod = VM.launcher(run)
    pod["metadata"]["ownerReferences"][0]["uid"] = instance["metadata"]["uid"]
    return starting.api.create(pod)


def settle(starting: Starting, node: str) -> None:
    """The share-manager runs, and the program knows."""
    manager = {
        "apiVersion": LONGHORN_API_VERSION,
        "kind": "ShareManager",
        "metadata": {"name": VM.volume, "namespace": LONGHORN_NAMESPACE},
    }
    found = starting.api.get(manager)
    starting.api.replace_status({**found, "status": {**found["status"], "state": "running", "ownerID": node}})
    until(lambda: admitted(starting.api, VM.vm).required == [node], "a pin")


@pytest.fixture(scope="module")
def story(installed: Installed, granted: list[Object]) -> Iterator[Story]:
    """A VM starts from nothing, its share-manager follows, and it is started again; dry runs in between."""
    assert granted
    api = installed.plane.api
    clear(api)
    installed.enable()
    with ExitStack() as here:
        cluster, starting = here.enter_context(ClusterState(api)), here.enter_context(Starting(api))
        server = here.enter_context(installed.serving("--events", "on", "--log-level", "debug"))
        cluster.become([*nodes(), *VM.shelf])
        instance = api.create(INSTANCE)
        until_watched(server)
        installed.until_called()
        first = start(starting, instance, "1")
        node = starting.placed(first)
        starting.ticket(VM, node)
        until(lambda: written(server, "written") == 1, "the first Event")
        starting.placed(starting.share_manager(VM))
        until(lambda: written(server, "written") == 2, "the Event of the share-manager")
        settle(starting, node)
        api.delete(first)
        start(starting, instance, "2")
        until(lambda: written(server, "written") == 3, "the Event of the second start")
        yield Story(installed, server, instance, node)
    installed.disable()
    api.delete(INSTANCE)
    clear(api)


def test_the_vm_s_events_tell_its_story(story: Story) -> None:
    """In order, about the VirtualMachineInstance by its uid, each with code and sentence; of dry runs nothing."""
    found = events(story.installed.plane.api)
    assert [(each["type"], each["reason"]) for each in found] == [
        ("Normal", "NotCoScheduled"),
        ("Normal", "ShareManagerSteered"),
        ("Normal", "CoScheduled"),
    ]
    volume = VM.volume
    used = f"claim {NAMESPACE}/db01: VM db01 uses it, and its pod virt-launcher-db01-1 is on node {story.node}"
    steered = f"preferred on {story.node}: ConsumerOnNode: {used}"
    assert [each["message"].split("; ")[0] for each in found] == [
        f"ShareManagerNoNode: claim db01: the share-manager of volume {volume} is on no node yet (state stopped)",
        f"share-manager of volume {volume}: {steered}",
        f"required on {story.node}: ShareManagerPod: claim db01: pod share-manager-{volume} is on node {story.node}",
    ]
    about = {**INSTANCE["metadata"], "uid": story.instance["metadata"]["uid"]}
    for each in found:
        assert each["involvedObject"] == {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", **about}


def test_kubectl_describe_tells_it_too(story: Story, tmp_path: Path) -> None:
    """What somebody sees who asks why."""
    described = Kubectl(story.installed.plane, tmp_path)("describe", "vmi", VM.vm, "-n", NAMESPACE)
    _, _, told = described.partition("Events:")
    assert [line.split()[:2] for line in told.splitlines() if NAME in line] == [
        ["Normal", "NotCoScheduled"],
        ["Normal", "ShareManagerSteered"],
        ["Normal", "CoScheduled"],
    ]
    assert f"required on {story.node}: ShareManagerPod" in told


REFUSED: Final[dict[str, Callable[[Api, Object], Any]]] = {
    "get": lambda api, event: api.get(event),
    "list": lambda api, _: api.items("v1", "Event", NAMESPACE),
    "patch": lambda api, event: api.patch(event, {"count": 2}),
    "delete": lambda api, event: api.delete(event),
    "create another kind": lambda api, _: api.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": NAMESPACE}}
    ),
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_the_right_is_to_create_and_no_more(story: Story, attempt: Callable[[Api, Object], Any]) -> None:
    """The webhook's account can't even read what it has written."""
    plane = story.installed.plane
    event = events(plane.api)[0]
    with pytest.raises(ApiError) as caught:
        attempt(plane.as_user(plane.service_account(NAME, NAME)), event)
    assert caught.value.status == http.client.FORBIDDEN


def test_the_log_has_the_outcome_of_each_event(story: Story) -> None:
    """At level debug: the uid of the admission, and the outcome of its Event."""
    lines = story.server.lines()
    told = [(line["uid"], line["outcome"]) for line in lines if line["message"] == "event"]
    admissions = {line["uid"]: line for line in lines if line["message"] == "admission"}
    assert [outcome for _, outcome in told] == ["written"] * 3
    assert [admissions[uid]["reason"] for uid, _ in told] == [
        "ShareManagerNoNode",
        "ConsumerOnNode",
        "ShareManagerPod",
    ]
