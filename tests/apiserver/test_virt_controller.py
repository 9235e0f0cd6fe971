"""What only a real virt-controller shows: the pods that it makes of VMs and migrations, and what the webhook does with
them. Both versions that are built: the newest that can be, and the first with `addedNodeSelector`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import decision
from support.kubevirt import vms
from support.kubevirt.cluster import MIGRATION_TARGET, Cluster, running, watched_pods
from support.kubevirt.longhorn_manager import CLASS, FIRST_CONSUMER
from support.kubevirt.plane import NEWEST, OLDEST
from support.objects.builders import OPT_IN
from support.scenarios.admitting import Admission, admission_lines, until

NODES: Final = ("node-a", "node-b", "node-c")
PROVISIONING: Final = "kubevirt.io/ephemeral-provisioning"
LABELS: Final = {
    "host-model-cpu.node.kubevirt.io/Skylake-Server": "true",
    "host-model-required-features.node.kubevirt.io/avx512f": "true",
    "cpu-model-migration.node.kubevirt.io/Skylake-Server": "true",
    "cpu-feature.node.kubevirt.io/avx512f": "true",
    "cpu-vendor.node.kubevirt.io/Intel": "true",
}
"""As node-labeller sets them on a node with this processor."""


@pytest.fixture(scope="module", params=[NEWEST, OLDEST])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes, KubeVirt of one version, and the webhook."""
    directory = tmp_path_factory.mktemp("kubevirt")
    labels = {"labels": {name: {**LABELS, "kubernetes.io/hostname": name} for name in NODES}}
    state = {"vmStateStorageClass": CLASS}
    parts = {"kubevirt": request.param, "nodes": labels, "has_cdi": True, "configuration": state}
    with running(directory, NODES, "--mode=required", **parts) as made:
        yield made


def required_nodes(pod: Object) -> list[str]:
    """The nodes that the webhook requires."""
    return Admission(pod, 0, 0).required


def test_a_start(cluster: Cluster) -> None:
    """The pod has the template's annotation and what the webhook looks for; the share-manager follows the VM."""
    instance = cluster.run("first", annotations={"tests/kept": "yes"})
    pod = cluster.pod("first")
    labels, annotations, spec = pod["metadata"]["labels"], pod["metadata"]["annotations"], pod["spec"]
    assert (labels["kubevirt.io"], labels["kubevirt.io/created-by"]) == ("virt-launcher", instance["metadata"]["uid"])
    assert (annotations[OPT_IN], annotations["tests/kept"]) == ("true", "yes")
    assert MIGRATION_TARGET not in labels
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == (vms.INSTANCE, "first", True)
    selector = {"kubernetes.io/arch": "amd64", "kubevirt.io/schedulable": "true"}
    assert selector.items() <= spec["nodeSelector"].items()
    assert [each["name"] for each in spec["containers"]][:1] == ["compute"]
    assert decision(pod).startswith("unchanged: ")
    assert cluster.home("first") == spec["nodeName"] == instance["status"]["nodeName"]


def test_a_quick_restart(cluster: Cluster) -> None:
    """The share-manager is still there: the VM's new pod is required on its node."""
    cluster.run("quick")
    home = cluster.home("quick")
    cluster.nodes.longhorn.kept.add(cluster.nodes.longhorn.volumes["vms", "quick"])
    cluster.restart("quick")
    pod = cluster.pod("quick")
    assert (required_nodes(pod), pod["spec"]["nodeName"], cluster.home("quick")) == ([home], home, home)


def test_migrations_are_left_alone(cluster: Cluster) -> None:
    """Of two in a row the API server does not call the webhook; reunite's brings the VM to its share-manager."""
    cluster.run("moved")
    home, asked = cluster.home("moved"), len(admission_lines(cluster.serving))
    assert cluster.migrate("moved")["status"]["phase"] == "Succeeded"
    pod = cluster.pod("moved")
    assert MIGRATION_TARGET in pod["metadata"]["labels"]
    assert (decision(pod), required_nodes(pod)) == ("", [])
    assert list(pod["spec"]["affinity"]["podAntiAffinity"]) == ["requiredDuringSchedulingIgnoredDuringExecution"]
    assert pod["spec"]["nodeName"] != home
    assert len(admission_lines(cluster.serving)) == asked
    selector = {"kubernetes.io/hostname": home}
    assert cluster.migrate("moved", 2, addedNodeSelector=selector)["status"]["phase"] == "Succeeded"
    pod = cluster.pod("moved")
    assert (pod["spec"]["nodeName"], decision(pod)) == (home, "")
    assert selector.items() <= pod["spec"]["nodeSelector"].items()
    assert len(admission_lines(cluster.serving)) == asked


def test_a_target_has_selectors_of_its_own(cluster: Cluster) -> None:
    """Of the source's processor, for a VM with the model of its host, which is KubeVirt's default; a start has none."""
    cluster.run("model")
    before = cluster.pod("model")["spec"]["nodeSelector"]
    cluster.migrate("model")
    after = cluster.pod("model")["spec"]["nodeSelector"]
    own = {"cpu-model-migration.node.kubevirt.io/Skylake-Server", "cpu-feature.node.kubevirt.io/avx512f"}
    vendor = {"cpu-vendor.node.kubevirt.io/Intel"} if cluster.plane.kubevirt == NEWEST else set()
    assert after.keys() - before.keys() == own | vendor
    cluster.restart("model")
    assert cluster.pod("model")["spec"]["nodeSelector"] == before


def test_a_cancelled_migration_leaves_traces(cluster: Cluster) -> None:
    """It is gone; the instance's state tells of it, and the target has had the migration's name."""
    cluster.run("cancelled")
    node = cluster.pod("cancelled")["spec"]["nodeName"]
    cluster.nodes.virt_handler.held.add("cancelled")
    migration = cluster.api.create(vms.migration("cancelled-1", "cancelled"))
    cluster.until_migrated(migration, "Running")
    source, target = cluster.pods("cancelled")
    if MIGRATION_TARGET not in target["metadata"]["labels"]:
        source, target = target, source
    assert target["metadata"]["annotations"]["kubevirt.io/migrationJobName"] == "cancelled-1"
    cluster.api.delete(migration)
    cluster.api.wait_for(migration, lambda found: found is None, what="gone")
    state = cluster.api.get(vms.instance("cancelled"))["status"]["migrationState"]
    assert (state["abortRequested"], state["migrationUid"]) == (True, migration["metadata"]["uid"])
    assert state["endTimestamp"]
    assert cluster.api.get(vms.instance("cancelled"))["status"]["nodeName"] == node
    assert cluster.pod("cancelled")["metadata"]["uid"] == source["metadata"]["uid"]


def test_a_drain(cluster: Cluster) -> None:
    """virt-api refuses the eviction; virt-controller migrates, and tells the node and, from 1.8 on, a priority."""
    cluster.run("drained")
    pod = cluster.pod("drained")
    node = pod["spec"]["nodeName"]
    cluster.nodes.cordon(node)
    try:
        refused = cluster.evict(pod)
        assert refused is not None
        assert "Eviction triggered evacuation" in refused.message
        (migration,) = until(lambda: cluster.migrations("drained"), "the evacuation")
        assert migration["metadata"]["name"].startswith("kubevirt-evacuation-")
        assert migration["metadata"]["annotations"]["kubevirt.io/evacuationMigration"] == node
        assert migration["spec"].get("priority") == {NEWEST: "system-critical", OLDEST: None}[cluster.plane.kubevirt]
        cluster.until_migrated(migration, "Succeeded")
        assert "evacuationNodeName" not in cluster.api.get(vms.instance("drained"))["status"]
        assert cluster.pod("drained")["spec"]["nodeName"] != node
    finally:
        cluster.nodes.cordon(node, on=False)


def test_failed_starts_are_counted(cluster: Cluster) -> None:
    """After one the webhook prefers, whatever it was to require; one that ran is the end of the count."""
    cluster.run("failing")
    home = cluster.home("failing")
    cluster.nodes.longhorn.kept.add(cluster.nodes.longhorn.volumes["vms", "failing"])
    cluster.start("failing", on=False)
    cluster.nodes.kubelets.failing.add("failing")
    cluster.start("failing")
    failed = cluster.api.wait_for(
        vms.vm("failing"), lambda vm: bool(vm and vm["status"].get("startFailure")), what="with a failed start"
    )
    assert failed is not None
    assert failed["status"]["startFailure"]["consecutiveFailCount"] == 1
    cluster.nodes.kubelets.failing.discard("failing")
    cluster.until_running("failing")
    pod = cluster.pod("failing")
    assert required_nodes(pod) == []
    assert "StartFailures" in decision(pod)
    assert home
    cluster.api.wait_for(
        vms.vm("failing"), lambda vm: bool(vm and not vm["status"].get("startFailure")), what="cleared"
    )


def test_a_vm_with_a_tpm(cluster: Cluster) -> None:
    """Its state has a claim of its own, which is in the pod beside the disk's."""
    cluster.run("tpm", domain={"devices": {"tpm": {"persistent": True}}})
    volumes = cluster.pod("tpm")["spec"]["volumes"]
    claims = [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]
    (state,) = (each for each in claims if each.startswith("persistent-state-for-tpm-"))
    assert {*claims} == {"tpm", state}
    assert cluster.home(state) == cluster.home("tpm") == cluster.pod("tpm")["spec"]["nodeName"]


@pytest.mark.parametrize("storage_class", [CLASS, FIRST_CONSUMER])
def test_a_vm_with_a_data_volume(storage_class: str, cluster: Cluster) -> None:
    """Where the claim waits for a consumer, a pod that provisions it runs first, and the webhook leaves that alone."""
    name = f"data-{storage_class}"
    claim = vms.claim(name, storage_class=storage_class)["spec"]
    template = {"metadata": {"name": name}, "spec": {"source": {"blank": {}}, "pvc": claim}}
    machine = vms.virtual_machine(name, (), dataVolumeTemplates=[template])
    inner = machine["spec"]["template"]["spec"]
    inner["domain"]["devices"]["disks"] = [{"name": "disk", "disk": {"bus": "virtio"}}]
    inner["volumes"] = [{"name": "disk", "dataVolume": {"name": name}}]
    with watched_pods(cluster) as seen:
        cluster.api.create(machine)
        cluster.until_running(name)
        pod = cluster.pod(name)
    assert cluster.home(name) == pod["spec"]["nodeName"]
    provisioning = [each for each in seen if PROVISIONING in (each["metadata"].get("annotations") or {})]
    assert [decision(each) for each in provisioning] == [""] * (storage_class == FIRST_CONSUMER)


def test_a_plugged_volume(cluster: Cluster) -> None:
    """It is in no launcher pod; virt-controller's attachment pod runs on the launcher's node, and is left alone."""
    machine = vms.virtual_machine("plugged", ("plugged",))
    inner = machine["spec"]["template"]["spec"]
    inner["domain"]["devices"]["disks"].append({"name": "extra", "disk": {"bus": "scsi"}})
    extra = {"name": "extra", "persistentVolumeClaim": {"claimName": "extra", "hotpluggable": True}}
    inner["volumes"].append(extra)
    for name in ("plugged", "extra"):
        cluster.api.create(vms.claim(name))
    with watched_pods(cluster) as seen:
        cluster.api.create(machine)
        cluster.until_instance(
            "plugged",
            lambda now: (
                [each.get("phase") for each in now["status"].get("volumeStatus", ()) if each["name"] == "extra"]
                == ["Ready"]
            ),
            "with its volume",
        )
    launcher = cluster.pod("plugged")
    claims = [
        each["persistentVolumeClaim"]["claimName"]
        for each in launcher["spec"]["volumes"]
        if "persistentVolumeClaim" in each
    ]
    assert claims == ["plugged"]
    attached = {each["metadata"]["name"]: each for each in seen if each["metadata"]["name"].startswith("hp-volume-")}
    (attachment,) = attached.values()
    assert attachment["metadata"]["labels"]["kubevirt.io"] == "hotplug-disk"
    (owner,) = attachment["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Pod", launcher["metadata"]["name"])
    assert (decision(attachment), attachment["spec"]["nodeName"]) == ("", launcher["spec"]["nodeName"])
