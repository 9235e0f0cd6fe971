"""explain against an API server: the free resources of nodes, as the webhook counts them."""

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
    """Add these pods to the cluster."""
    for pod in pods:
        meta = pod["metadata"]
        api.objects[f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"] = pod


def full(node: str) -> dict[str, Any]:
    """A pod that leaves too little of a node's 64 CPUs for a VM that requests one."""
    return builders_pods.pod("batch", node=node, namespace="jobs", requests={"cpu": "64"})


def asking(vm: dict[str, Any]) -> dict[str, Any]:
    """The VM, with a request of one CPU."""
    vm["spec"]["template"]["spec"]["domain"] = {"resources": {"requests": {"cpu": "1"}}}
    return vm


@pytest.fixture(autouse=True)
def _vm_with_requests(api: StaticApi) -> None:
    for path in [path for path in api.objects if "/kubevirt.io/" in path and path.endswith("/db")]:
        del api.objects[path]  # the disk is of one VM
    api.objects[MACHINE] = live(asking(a_vm("disk")), "db01")


def asked(api: StaticApi, collection: str) -> int:
    """The number of times that a collection was listed."""
    return sum(path.partition("?")[0] == collection for path in api.asked)


def test_a_full_node_is_shown_as_the_webhook_decides(explain: Explain, api: StaticApi) -> None:
    """The node is preferred only, and the table of nodes shows it so; the same rules apply to the other nodes."""
    put(api, full("node-a"))
    found = explain("vm/db01").found
    assert (found["decision"], found["reason"]) == ("preferred", "NoRoom")
    assert {node["name"]: node["reason"] for node in found["nodes"]} == {
        "node-a": "NoRoom",
        "node-b": "NodeFeasible",
        "node-c": "NodeCordoned",
    }


def test_the_pod_of_the_vm_itself_does_not_count(explain: Explain, api: StaticApi) -> None:
    """It is gone before KubeVirt creates the next pod; the pod of another VM counts."""
    own = builders.vm_pod("db01", node="node-a", claims=["disk"])
    put(api, builders_pods.asking(own, {"cpu": "64"}))
    assert explain("vm/db01").found["required"] == ["node-a"]
    other = builders.vm_pod("db02", node="node-a", claims=["data"])
    put(api, builders_pods.asking(other, {"cpu": "64"}))
    assert explain("vm/db01").found["reason"] == "NoRoom"


def test_the_pod_of_the_volume_itself_does_not_count(explain: Explain, api: StaticApi) -> None:
    """The current share-manager pod is gone before the next one; so the webhook still steers the next one to the VM."""
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
    """Each node is preferred only, for a reason in the API server's words; a note names the user's permissions."""
    api.refuse(refused, 403, 'it is forbidden: User "alice" cannot list resource "x"')
    found = explain("vm/db01").found
    assert (found["decision"], found["reason"]) == ("preferred", "PodsUnknown")
    assert 'User "alice" cannot list resource "x"' in found["sentence"]
    assert any(note.startswith("you may not read every object that explain needs") for note in found["notes"])


def test_pods_are_listed_once_for_all_that_is_asked(explain: Explain, api: StaticApi) -> None:
    """One list serves several objects; the API server leaves out finished pods."""
    explain("vm/db01 vm/db pod/virt-launcher-db-now")
    assert (asked(api, PODS), asked(api, CSI_NODES)) == (1, 1)
    (listed,) = [path for path in api.asked if path.startswith(f"{PODS}?")]
    assert "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed" in listed


def test_pods_are_not_listed_without_an_opt_in(explain: Explain, api: StaticApi) -> None:
    """Free resources decide nothing for a pod without the annotation."""
    explain("pod/virt-launcher-out")
    assert asked(api, PODS) == 0


@pytest.mark.parametrize("which", ["virt-launcher", "none"])
def test_with_watch_pods_limited_resources_do_not_count(which: str, explain: Explain, api: StaticApi) -> None:
    """As in a webhook with the same --watch-pods: nothing is listed, and a full node is required."""
    put(api, full("node-a"))
    assert explain(f"vm/db01 --watch-pods {which}").found["required"] == ["node-a"]
    assert asked(api, PODS) == 0


def test_headroom_counts_as_it_does_for_the_server(explain: Explain) -> None:
    """The headroom is subtracted from the free resources."""
    assert explain("vm/db01 --headroom cpu=63").found["required"] == ["node-a"]
    found = explain("vm/db01 --headroom cpu=63500m").found
    assert found["reason"] == "NoRoom"
    assert "63500m of it kept free" in found["sentence"]


def test_a_limit_on_volumes_is_read(explain: Explain, api: StaticApi) -> None:
    """It is in the CSINode of the node."""
    api.objects[f"{CSI_NODES}/node-a"] = builders_pods.csi_node("node-a", {builders.LONGHORN_DRIVER: 4})
    assert explain("vm/db01").found["reason"] == "VolumesLimited"


def pinned(decision: str | None, *conditions: dict[str, str]) -> dict[str, Any]:
    """The VM's pod, which waits for a node."""
    written = dict(builders.written("node-a")) if decision == DECISION else {builders.DECISION: decision}
    annotations = {} if decision is None else written
    pod = builders.vm_pod("db01", claims=["disk"], annotations=annotations)
    return {**pod, "status": {"phase": "Pending", "conditions": list(conditions)}}


@pytest.fixture
def stuck(api: StaticApi) -> dict[str, Any]:
    """The spec of a VM whose pinned pod fits on no node."""
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
def test_a_stuck_pod_has_a_hint_with_the_command(words: str, explain: Explain, stuck: dict[str, Any]) -> None:
    """The hint has kube-scheduler's message, and the command that the user can run."""
    stuck["runStrategy"] = "Always"
    (hint,) = explain(words).found["hints"]
    assert hint == (
        "pod virt-launcher-db01 may run only on the nodes that its affinity names, and fits none: 0/3 "
        "nodes are available: 1 Insufficient cpu.; the webhook decides again for a new pod: "
        "virtctl restart db01 -n vms"
    )
    assert "virtctl restart db01 -n vms" in explain(words, output="text").out


@each_way
def test_the_command_is_one_that_kubevirt_accepts(words: str, explain: Explain, stuck: dict[str, Any]) -> None:
    """KubeVirt refuses to restart a VM with runStrategy Once."""
    stuck["runStrategy"] = "Once"
    (hint,) = explain(words).found["hints"]
    assert "; the webhook decides again for a new pod: kubectl delete virtualmachineinstance db01 -n vms; " in hint
    assert "virtctl" not in hint


@pytest.mark.usefixtures("stuck")
def test_without_the_virtual_machine_the_hint_has_both_commands(explain: Explain, api: StaticApi) -> None:
    """The VirtualMachine can be missing, or the user may not read it."""
    api.refuse(MACHINE, 403, "not for you")
    (hint,) = explain("pod/virt-launcher-db01").found["hints"]
    assert hint.endswith(
        "virtctl restart db01 -n vms; if the VM's runStrategy is Once: "
        "kubectl delete virtualmachineinstance db01 -n vms"
    )
    api.refuse(MACHINE, 404, "not found")
    (hint,) = explain("pod/virt-launcher-db01").found["hints"]
    assert "no VirtualMachine owns db01" in hint


@pytest.mark.parametrize(
    ("decision", "conditions"),
    [
        pytest.param("preferred on node-a: NoRoom: for a test", [UNSCHEDULABLE], id="a wish"),
        pytest.param(None, [UNSCHEDULABLE], id="none of ours"),
        pytest.param(DECISION, [], id="not looked at yet"),
        pytest.param(DECISION, [{**UNSCHEDULABLE, "reason": "SchedulingGated"}], id="gated"),
    ],
)
def test_a_pod_that_waits_for_another_reason_has_no_hint(
    decision: str | None, conditions: list[dict[str, str]], explain: Explain, api: StaticApi
) -> None:
    """A pin of somebody else, or a pod that kube-scheduler has not evaluated yet, needs no hint."""
    put(api, pinned(decision, *conditions))
    assert explain("pod/virt-launcher-db01").found["hints"] == []
