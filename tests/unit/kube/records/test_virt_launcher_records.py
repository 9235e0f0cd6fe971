"""What is stored of a virt-launcher pod has all that its VM's row shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import cluster
from support.fakes.watching import RESOURCES
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import EARLY, LATER, LATEST, running_pod, scheduled, unschedulable

from webhook.core.api.pod import Pod
from webhook.core.observe.remedy import owner_of
from webhook.core.observe.vm_state import vm_status_of
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube.records.pods import WirePod
from webhook.kube.records.virt_launchers import virt_launcher
from webhook.kube.wire import Decoders

Object = dict[str, Any]


def decided(told: Mapping[str, str], node: str | None, *conditions: Object) -> Object:
    """A pod that carries this decision: its record."""
    pod = running_pod("db", "root", node)
    pod["metadata"]["annotations"] |= told
    pod["spec"]["affinity"] = builders.node_affinity(required=[builders.on_node("node-b")])
    pod["status"]["conditions"] = list(conditions) or pod["status"].get("conditions")
    return pod


def waiting(*reasons: str) -> Object:
    """A pod whose containers do not run on its node."""
    pod = decided(REQUIRED, "node-b", scheduled(EARLY))
    containers = [
        {"name": f"c{number}", "state": {"waiting": {"reason": reason}}} for number, reason in enumerate(reasons)
    ]
    pod["status"] |= {"phase": "Pending", "containerStatuses": containers}
    return pod


REQUIRED = builders.recorded("required", "node-b")
PODS = [
    pytest.param(running_pod("db", "root"), id="on a node"),
    pytest.param(running_pod("db", "root", None), id="on none"),
    pytest.param(decided(REQUIRED, None, unschedulable(LATER)), id="stuck"),
    pytest.param(decided(REQUIRED, None, unschedulable(LATER, None)), id="stuck, without a message"),
    pytest.param(decided(REQUIRED, None), id="pinned, not evaluated"),
    pytest.param(decided(builders.recorded("preferred", "node-b"), None, unschedulable(LATER)), id="a preference"),
    pytest.param(decided({builders.WRITTEN: "whatever somebody has written there" * 9}, None), id="not a record"),
    pytest.param(decided(REQUIRED, "node-b"), id="pinned, and there"),
    pytest.param(decided(builders.recorded("required", "node-b", owner=""), None), id="a record of no owner"),
    pytest.param(
        decided(builders.recorded("preferred", "a", "b", "c", more=2, because="y: z"), None), id="a record of nodes"
    ),
    pytest.param(decided(builders.recorded("unchanged", because="y: z"), None), id="unchanged"),
    pytest.param(waiting("ContainerCreating", "PodInitializing"), id="not running"),
    pytest.param(waiting(), id="not running, and the kubelet says nothing"),
    pytest.param(decided({}, None, {"type": "PodScheduled", "status": "False"}), id="no decision"),
]


@pytest.mark.parametrize("pod", PODS)
def test_a_row_of_a_stored_pod_is_the_row_of_the_pod(pod: Object) -> None:
    """As `status` would have it of the whole pod."""
    built = virt_launcher(Decoders(WirePod).object(json.dumps(pod).encode()))
    expected = vm_status_of([convert(pod, Pod)], cluster(), Policy(), LATEST)
    assert expected is not None
    assert vm_status_of([built], cluster(), Policy(), LATEST) == expected


def stored(kind: Kind, described: dict[str, Any]) -> Any:
    """What is stored of an object."""
    resource = RESOURCES[kind]
    return resource.transform(Decoders(resource.wire).object(json.dumps(described).encode()))


@pytest.mark.parametrize("name", ["", "Node A", "n" * 254, "../x"])
def test_what_can_not_be_the_name_of_a_node_is_not_kept(name: str) -> None:
    """Who may write the status of an instance can write anything there."""
    assert stored(Kind.VIRTUAL_MACHINE_INSTANCE, virtual_machine_instance("db", node=name)).node is None


def test_what_owns_a_vm_is_kept() -> None:
    """A command on a VM of a VirtualMachinePool can be undone by the pool, and the page says so."""
    described = virtual_machine("db")
    owner = {"apiVersion": "pool.kubevirt.io/v1alpha1", "kind": "VirtualMachinePool", "name": "web", "uid": "p"}
    described["metadata"]["ownerReferences"] = [owner]
    assert owner_of(stored(Kind.VIRTUAL_MACHINE, described)) == "VirtualMachinePool web"
