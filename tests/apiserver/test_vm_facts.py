"""What VirtualMachines and VirtualMachineInstances decide on a real API server that has these kinds."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import crd
from support.drivers.serving import Serving
from support.objects import builders, builders_pods
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.scenarios.admitting import admission_lines, created, until_watched

KINDS: Final = ("VirtualMachine", "VirtualMachineInstance")
HOMES: Final = {
    "first": "node-a",
    "second": "node-a",
    "forged": "node-b",
    "real": "node-b",
    "failed": "node-c",
    "sharing": "node-d",
}
"""VM -> the node of its share-manager. A node has room for one VM."""
INSTANCES: Final = [vm for vm in HOMES if vm != "forged"]
FAILURES: Final = {"failed": 1}
STOPPED: Final = virtual_machine("stopped", ["own", "sharing"])
_BAD_LABEL: Final = {"tests/refused": "by the API server, after all webhooks"}


class Here(NamedTuple):
    """A control plane with VMs, and the uid of each VM's VirtualMachineInstance."""

    installed: Installed
    uids: dict[str, str]

    @property
    def api(self) -> Api:
        """The admin's client."""
        return self.installed.plane.api

    def pod(self, vm: str, **parts: Any) -> Object:
        """The pod of a VM; its VirtualMachineInstance need not exist."""
        made = builders.vm_pod(vm, claims=[vm], opt_in="required", uid=self.uids.get(vm), **parts)
        return builders_pods.asking(made, {"cpu": "3"})

    def refuse(self, vm: str) -> None:
        """Create the VM's pod, which the API server refuses after it has asked the webhook: no watch will show it."""
        with pytest.raises(ApiError) as caught:
            self.api.create(self.pod(vm, labels=_BAD_LABEL), owned=False)
        assert caught.value.status == http.client.UNPROCESSABLE_ENTITY


def described() -> Iterator[Object]:
    """Nodes, and for each VM a disk whose share-manager runs."""
    for node in dict.fromkeys(HOMES.values()):
        yield builders.node(node, allocatable={"cpu": "4"})
        yield builders.longhorn_node(node)
        yield builders.instance_manager_pod(node)
    for vm, node in HOMES.items():
        volume = f"pvc-{vm}"
        yield builders.persistent_volume_claim(vm, volume_name=volume)
        yield builders.persistent_volume(volume, claim=vm)
        yield builders.share_manager(volume, state="running", ownerID=node)
        yield builders.share_manager_pod(volume, nodeName=node)


@pytest.fixture(scope="module")
def here(installed: Installed) -> Iterator[Here]:
    """KubeVirt's kinds and VMs; afterwards there are none."""
    api, definitions = installed.plane.api, [crd(kind) for kind in KINDS]
    installed.plane.install(definitions)
    try:
        with ClusterState(api) as cluster:
            cluster.become(described())
            for vm in INSTANCES:
                api.create(virtual_machine(vm, [vm], start_failures=FAILURES.get(vm, 0)))
            api.create(STOPPED)
            instances = [api.create(virtual_machine_instance(vm, [vm])) for vm in INSTANCES]
            installed.enable()
            yield Here(installed, {each["metadata"]["name"]: each["metadata"]["uid"] for each in instances})
            installed.disable()
    finally:
        for definition in definitions:
            api.delete(definition)
        installed.plane.install_kubevirt()


@pytest.fixture
def server(here: Here) -> Iterator[Serving]:
    """A server that knows all VMs."""
    with here.installed.serving() as serving:
        until_watched(serving)
        here.installed.until_called()
        yield serving


def last(server: Serving, vm: str) -> dict[str, Any]:
    """The log line of the last call about a VM."""
    return [line for line in admission_lines(server) if line.get("vmi") == vm][-1]


def test_a_vm_is_pinned_without_a_read_and_takes_its_place_at_once(here: Here, server: Serving) -> None:
    """No watch has shown the pod of the first VM: the second VM sees it, because it is assumed."""
    assert created(here.api, here.pod("second")).required == ["node-a"]
    here.refuse("first")
    line = last(server, "first")
    assert (line["decision"], line["nodes"]) == ("required", ["node-a"])
    assert "reads" not in line
    assert created(here.api, here.pod("second")).required == []
    assert last(server, "second")["reason"] in {"NoRoom", "NodeMayFillUp"}


def test_a_pod_without_an_instance_is_not_logged_and_takes_no_place(here: Here, server: Serving) -> None:
    """Anybody may create such a pod, or send one to the webhook."""
    here.refuse("forged")
    assert created(here.api, here.pod("real")).required == ["node-b"]
    assert last(server, "real")["decision"] == "required"
    assert "forged" not in {line.get("vmi") for line in admission_lines(server)}


def test_after_a_failed_start_the_node_is_only_preferred(here: Here, server: Serving) -> None:
    """KubeVirt counts it in the VirtualMachine."""
    pod = created(here.api, here.pod("failed"))
    assert (pod.required, set(pod.preferred)) == ([], {"node-c"})
    line = last(server, "failed")
    assert (line["decision"], line["reason"], "reads" in line) == ("preferred", "StartFailures", False)


def test_a_claim_that_a_stopped_vm_names_is_shared(here: Here, server: Serving) -> None:
    """By the template of a VirtualMachine that has no VirtualMachineInstance."""
    pod = created(here.api, here.pod("sharing"))
    assert (pod.required, set(pod.preferred)) == ([], {"node-d"})
    assert "its volume is also used by VM stopped" in pod.decision
    line = last(server, "sharing")
    assert (line["decision"], line["reason"], "reads" in line) == ("preferred", "SharedClaim", False)
