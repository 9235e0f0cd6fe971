"""explain against an API server: what the pods of the cluster leave of its nodes, as the server judges it."""

from __future__ import annotations

from typing import Any

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import Explain, live
from support.fakes.static_api import StaticApi
from support.objects import builders, builders_pods

pytestmark = pytest.mark.usefixtures("no_environment")

PODS = "/api/v1/pods"
MACHINE = "/apis/kubevirt.io/v1/namespaces/vms/virtualmachines/db01"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
DECISION = "required on node-a: ShareManagerPod: for a test"
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 1 Insufficient cpu.",
}


def put(api: StaticApi, *pods: dict[str, Any]) -> None:
    """Have these pods in the cluster, too."""
    for pod in pods:
        meta = pod["metadata"]
        api.objects[f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"] = pod


def full(node: str) -> dict[str, Any]:
    """A pod that leaves too little of a node's 64 CPUs for any VM that asks for some."""
    return builders_pods.pod("batch", node=node, namespace="jobs", requests={"cpu": "64"})


def asking(vm: dict[str, Any]) -> dict[str, Any]:
    """The VM, with a request of one CPU."""
    vm["spec"]["template"]["spec"]["domain"] = {"resources": {"requests": {"cpu": "1"}}}
    return vm


@pytest.fixture(autouse=True)
def _vm_with_requests(api: StaticApi) -> None:
    api.objects[MACHINE] = live(asking(a_vm("disk")), "db01")


def asked(api: StaticApi, collection: str) -> int:
    """How often a collection was listed."""
    return sum(path.partition("?")[0] == collection for path in api.asked)


def test_a_full_node_is_told_as_the_server_decides(explain: Explain, api: StaticApi) -> None:
    """Only preferred, and so in the table of nodes; the others are judged by the same rules."""
    put(api, full("node-a"))
    found = explain("vm/db01").found
    assert (found["decision"], found["reason"]) == ("preferred", "NoRoom")
    assert {node["name"]: node["reason"] for node in found["nodes"]} == {
        "node-a": "NoRoom",
        "node-b": "NodeFeasible",
        "node-c": "NodeCordoned",
    }


def test_the_vm_s_own_pod_takes_no_room(explain: Explain, api: StaticApi) -> None:
    """It is gone before the next one is made; another VM's is not."""
    own = builders.vm_pod("db01", node="node-a", claims=["disk"])
    put(api, builders_pods.asking(own, {"cpu": "64"}))
    assert explain("vm/db01").found["required"] == ["node-a"]
    other = builders.vm_pod("db02", node="node-a", claims=["data"])
    put(api, builders_pods.asking(other, {"cpu": "64"}))
    assert explain("vm/db01").found["reason"] == "NoRoom"


def test_a_volume_s_own_pod_takes_no_room(explain: Explain, api: StaticApi) -> None:
    """A share-manager pod that is there now is gone before the volume's next one; so it is still drawn to its VM."""
    api.objects["/apis/longhorn.io/v1beta2/namespaces/longhorn-system/volumes/pvc-disk"] = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Volume",
        "metadata": {"name": "pvc-disk", "namespace": "longhorn-system"},
        "spec": {"accessMode": "rwx"},
        "status": {"kubernetesStatus": {"pvName": "pv-disk"}},
    }
    own = builders.share_manager_pod("pvc-disk", nodeName="node-b")
    put(api, {**own, "spec": {**own["spec"], "containers": [{"name": "x", "ports": [{"hostPort": 2049}]}]}})
    found = explain("volume/pvc-disk").found
    assert {node["name"]: node["reason"] for node in found["nodes"]}["node-b"] == "NodeFeasible"
    assert found["decision"] == "preferred"


@pytest.mark.parametrize("refused", [PODS, CSI_NODES])
def test_pods_that_may_not_be_listed_are_not_known(refused: str, explain: Explain, api: StaticApi) -> None:
    """Each node is only preferred, for a reason in the API server's words; a note says whose permissions these are."""
    api.refuse(refused, 403, 'it is forbidden: User "alice" cannot list resource "x"')
    found = explain("vm/db01").found
    assert (found["decision"], found["reason"]) == ("preferred", "PodsUnknown")
    assert 'User "alice" cannot list resource "x"' in found["sentence"]
    assert any(note.startswith("not everything could be read with your own permissions") for note in found["notes"])


def test_pods_are_listed_once_for_all_that_is_asked(explain: Explain, api: StaticApi) -> None:
    """By one list for several objects; those that are over are left to the API server."""
    explain("vm/db01 vm/db pod/virt-launcher-db-now")
    assert (asked(api, PODS), asked(api, CSI_NODES)) == (1, 1)
    (listed,) = [path for path in api.asked if path.startswith(f"{PODS}?")]
    assert "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed" in listed


def test_pods_are_not_listed_for_one_that_did_not_ask(explain: Explain, api: StaticApi) -> None:
    """Room decides nothing for a pod without our annotation."""
    explain("pod/virt-launcher-out")
    assert asked(api, PODS) == 0


@pytest.mark.parametrize("which", ["virt-launcher", "none"])
def test_with_the_guard_off_room_is_not_looked_at(which: str, explain: Explain, api: StaticApi) -> None:
    """As a server with the same --watch-pods: nothing is listed, and a full node is required."""
    put(api, full("node-a"))
    assert explain(f"vm/db01 --watch-pods {which}").found["required"] == ["node-a"]
    assert asked(api, PODS) == 0


def test_headroom_counts_as_it_does_for_the_server(explain: Explain) -> None:
    """What is to stay free is taken from what is left."""
    assert explain("vm/db01 --headroom cpu=63").found["required"] == ["node-a"]
    found = explain("vm/db01 --headroom cpu=63500m").found
    assert found["reason"] == "NoRoom"
    assert "63500m of it kept free" in found["sentence"]


def test_a_limit_on_volumes_is_read(explain: Explain, api: StaticApi) -> None:
    """Of the node's CSINode."""
    api.objects[f"{CSI_NODES}/node-a"] = builders_pods.csi_node("node-a", {builders.LONGHORN_DRIVER: 4})
    assert explain("vm/db01").found["reason"] == "VolumesLimited"


def pinned(decision: str | None, *conditions: dict[str, str]) -> dict[str, Any]:
    """The VM's pod that waits for a node."""
    written = dict(builders.written("node-a")) if decision == DECISION else {builders.DECISION: decision}
    annotations = {} if decision is None else written
    pod = builders.vm_pod("db01", claims=["disk"], annotations=annotations)
    return {**pod, "status": {"phase": "Pending", "conditions": list(conditions)}}


@pytest.fixture
def stuck(api: StaticApi) -> dict[str, Any]:
    """The spec of the VM whose pinned pod no node is found for."""
    api.objects["/apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances/db01"] = live(
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {}, "spec": {}}, "db01"
    )
    pod = pinned(DECISION, UNSCHEDULABLE)
    pod["metadata"]["labels"]["kubevirt.io/created-by"] = ""
    put(api, pod)
    spec: dict[str, Any] = api.objects[MACHINE]["spec"]
    return spec


each_way = pytest.mark.parametrize("words", ["pod/virt-launcher-db01", "vm/db01"])


@each_way
def test_a_pod_that_our_pin_leaves_pending_is_told_with_what_frees_it(
    words: str, explain: Explain, stuck: dict[str, Any]
) -> None:
    """What kube-scheduler says, and the command; it is for whoever asks to run it."""
    stuck["runStrategy"] = "Always"
    (told,) = explain(words).found["hints"]
    assert told == (
        "pod virt-launcher-db01 may run only on the nodes that its affinity names, and fits none: 0/3 "
        "nodes are available: 1 Insufficient cpu.; a new pod is decided on by what is there then: "
        "virtctl restart db01 -n vms"
    )
    assert "virtctl restart db01 -n vms" in explain(words, output="text").out


@each_way
def test_what_frees_it_is_what_kubevirt_takes(words: str, explain: Explain, stuck: dict[str, Any]) -> None:
    """It refuses to restart a VM with runStrategy Once."""
    stuck["runStrategy"] = "Once"
    (told,) = explain(words).found["hints"]
    assert " by what is there then: kubectl delete virtualmachineinstance db01 -n vms; " in told
    assert "virtctl" not in told


@pytest.mark.usefixtures("stuck")
def test_what_frees_it_is_told_without_the_virtual_machine(explain: Explain, api: StaticApi) -> None:
    """Which may not be there, or not be for whoever asks."""
    api.refuse(MACHINE, 403, "not for you")
    (told,) = explain("pod/virt-launcher-db01").found["hints"]
    assert told.endswith(
        "virtctl restart db01 -n vms; if the VM's runStrategy is Once: "
        "kubectl delete virtualmachineinstance db01 -n vms"
    )
    api.refuse(MACHINE, 404, "not found")
    (told,) = explain("pod/virt-launcher-db01").found["hints"]
    assert "no VirtualMachine owns db01" in told


@pytest.mark.parametrize(
    ("decision", "conditions"),
    [
        pytest.param("preferred on node-a: NoRoom: for a test", [UNSCHEDULABLE], id="a wish"),
        pytest.param(None, [UNSCHEDULABLE], id="none of ours"),
        pytest.param(DECISION, [], id="not looked at yet"),
        pytest.param(DECISION, [{**UNSCHEDULABLE, "reason": "SchedulingGated"}], id="gated"),
    ],
)
def test_a_pod_that_waits_for_another_reason_is_not_told_so(
    decision: str | None, conditions: list[dict[str, str]], explain: Explain, api: StaticApi
) -> None:
    """A pin that is not ours, or one that nobody has refused, needs nothing."""
    put(api, pinned(decision, *conditions))
    assert explain("pod/virt-launcher-db01").found["hints"] == []
