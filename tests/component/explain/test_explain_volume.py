"""explain for share-manager pods of a live cluster: by volume and by pod, and which objects it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import LONGHORN, Explain, live
from support.fakes.static_api import StaticApi
from support.objects import builders, builders_pods
from support.scenarios import cold_start
from support.scenarios.cold_start import PASSPHRASE, VOLUME, a_class, a_volume, longhorn

pytestmark = pytest.mark.usefixtures("no_environment")
DECIDED = "preferred on node-a: ConsumerOnNode: for a test"
POD = f"/api/v1/namespaces/longhorn-system/pods/share-manager-{VOLUME}"


def placed() -> dict[str, Any]:
    """The share-manager pod of an encrypted volume on node-a, as the webhook patched it."""
    affinity = builders.node_affinity(preferred={"node-a": 100})
    pod = cold_start.encrypted(nodeName="node-a", affinity=affinity)
    record = '{"preferred":[["node-a",100,1]]}'
    pod["metadata"]["annotations"] |= {builders.DECISION: DECIDED, builders.WRITTEN: record}
    return {**pod, "status": {"phase": "Running"}}


@pytest.fixture
def stored() -> list[builders.Object]:
    """VM `db` on node-b, its volume, and the share-manager pod, which is still on node-a."""
    return [*cold_start.cluster(), live(a_vm("disk"), "db"), a_volume(), a_class(), placed()]


@pytest.mark.parametrize("words", ["volume/pvc-disk", "lhv pvc-disk -n other", "volumes.longhorn.io/pvc-disk"])
def test_a_volume_is_explained_by_its_next_share_manager_pod(words: str, explain: Explain) -> None:
    """In any namespace: the nodes of the next pod, and the current pod."""
    ran = explain(words)
    assert (ran.code, ran.err) == (0, "")
    assert (ran.found["object"]["kind"], ran.found["object"]["namespace"]) == ("Volume", "longhorn-system")
    assert (ran.found["decision"], ran.found["preferred"]) == ("preferred", [{"node": "node-b", "weight": 100}])
    assert ran.found["running"] == [
        {"name": "share-manager-pvc-disk", "phase": "Running", "node": "node-a", "decision": DECIDED}
    ]
    assert [vm["vm"] for vm in ran.found["volume"]["claims"][0]["vms"]] == ["db"]
    assert ran.found["volume"]["tickets"][0]["node"] == "node-b"
    assert [node["name"] for node in ran.found["nodes"]] == ["node-b", "node-a", "node-c"]
    assert len(ran.found["notes"]) == 1


def test_a_share_manager_pod_is_explained_as_longhorn_made_it(explain: Explain) -> None:
    """Its node and the webhook's parts are removed, and shown separately."""
    found = explain(f"pod/share-manager-{VOLUME} -n longhorn-system").found
    assert (found["entry"], found["preferred"]) == ("share-manager", [{"node": "node-b", "weight": 100}])
    assert found["affinity"]["before"] is None
    assert found["running"][0]["decision"] == DECIDED


@pytest.mark.parametrize("output", ["text", "yaml", "json"])
@pytest.mark.parametrize("words", ["volume/pvc-disk", f"pod/share-manager-{VOLUME} -n longhorn-system"])
def test_the_passphrase_is_not_printed(words: str, output: str, explain: Explain, api: StaticApi) -> None:
    """The pod that explain reads has the passphrase."""
    assert PASSPHRASE in str(api.objects[POD])
    ran = explain(words, output=output)
    assert "share-manager-pvc-disk" in ran.out
    assert PASSPHRASE not in ran.out + ran.err


def test_the_storage_class_and_the_settings_count(explain: Explain, api: StaticApi) -> None:
    """A node that they exclude is not feasible, so it is not preferred, as for Longhorn's own pod."""
    selector = {"shareManagerNodeSelector": "disk:nvme"}
    api.objects["/apis/storage.k8s.io/v1/storageclasses/longhorn"] = a_class(parameters=selector)
    found = explain("volume/pvc-disk").found
    assert (found["decision"], found["reason"]) == ("unchanged", "NodeSelectorMismatch")
    api.objects["/apis/storage.k8s.io/v1/storageclasses/longhorn"] = a_class()
    api.objects["/api/v1/nodes/node-b"]["spec"]["taints"] = [builders.taint("nfs:NoSchedule")]
    assert explain("volume/pvc-disk").found["reason"] == "TaintNotTolerated"
    setting = longhorn("Setting", "taint-toleration", value="nfs:NoSchedule")
    api.objects[f"{LONGHORN}/settings/taint-toleration"] = setting
    assert explain("volume/pvc-disk").found["preferred"][0]["node"] == "node-b"


def test_a_restored_volume_is_found_by_what_longhorn_notes(explain: Explain, api: StaticApi) -> None:
    """Its PersistentVolume has another name; volume/NAME and pod/NAME both find it."""
    del api.objects[f"/api/v1/persistentvolumes/{VOLUME}"]
    api.objects |= {f"{LONGHORN}/volumes/{VOLUME}": a_volume("restored")}
    api.objects["/api/v1/persistentvolumes/restored"] = builders.persistent_volume(
        "restored", claim="disk", handle=VOLUME
    )
    for words in ("volume/pvc-disk", f"pod/share-manager-{VOLUME} -n longhorn-system"):
        found = explain(words).found
        assert (found["preferred"][0]["node"], found["volume"]["claims"][0]["claim"]) == ("node-b", "vms/disk")


def test_a_persistent_volume_of_another_handle_is_not_taken(explain: Explain, api: StaticApi) -> None:
    """The name in Longhorn's Volume can be out of date; the CSI handle decides."""
    del api.objects[f"/api/v1/persistentvolumes/{VOLUME}"]
    api.objects[f"{LONGHORN}/volumes/{VOLUME}"] = a_volume("other")
    api.objects["/api/v1/persistentvolumes/other"] = builders.persistent_volume("other", claim="disk", handle="x")
    assert explain("volume/pvc-disk").found["reason"] == "VolumeUnclaimed"


def test_other_pods_beside_the_vms_do_not_count(explain: Explain, api: StaticApi) -> None:
    """Another pod in the namespace of the VMs is not a VM, whatever volumes it uses."""
    other = builders_pods.pod("backup", node="node-a")
    other["spec"]["volumes"] = [builders.claim_volume("disk", "disk")]
    api.objects["/api/v1/namespaces/vms/pods/backup"] = other
    found = explain("volume/pvc-disk").found
    assert [vm["vm"] for vm in found["volume"]["claims"][0]["vms"]] == ["db"]
    assert found["preferred"] == [{"node": "node-b", "weight": 100}]


def test_a_volume_without_a_claim_is_shown_as_unclaimed(explain: Explain, api: StaticApi) -> None:
    """Nothing uses the volume, and explain lists no virt-launcher pods."""
    del api.objects[f"/api/v1/persistentvolumes/{VOLUME}"]
    api.objects[f"{LONGHORN}/volumes/{VOLUME}"] = {**a_volume(), "status": None}
    ran = explain("volume/pvc-disk")
    assert (ran.code, ran.found["reason"], ran.found["volume"]["claims"]) == (1, "VolumeUnclaimed", [])
    assert not [path for path in api.asked if path.startswith("/api/v1/namespaces/vms/pods")]


def test_a_ticket_leads_to_the_vms_pod_on_its_node(explain: Explain, api: StaticApi) -> None:
    """If the pod has no node in the list yet, the attachment ticket names its node."""
    del api.objects["/api/v1/namespaces/vms/pods/virt-launcher-db"]["spec"]["nodeName"]
    found = explain("volume/pvc-disk").found
    assert (found["reason"], found["preferred"][0]["node"]) == ("AttachmentTicket", "node-b")


def test_several_volumes_list_each_namespace_once(explain: Explain, api: StaticApi) -> None:
    """The nodes, and the VMs' pods of a namespace, are listed once for all volumes."""
    explain(f"volume/pvc-disk volume/pvc-disk pod/share-manager-{VOLUME} -n longhorn-system")
    listed = [path for path in api.asked if path.startswith(("/api/v1/namespaces/vms/pods?", "/api/v1/nodes?"))]
    assert len(listed) == 2


def grow(api: StaticApi) -> None:
    """Add so many nodes that kube-scheduler scores only a sample."""
    for each in cold_start.nodes(*(f"more-{index:03}" for index in range(110))):
        plural = f"{LONGHORN}/nodes" if "longhorn" in each["apiVersion"] else "/api/v1/nodes"
        api.objects[f"{plural}/{each['metadata']['name']}"] = each


def asked_for_config_maps(api: StaticApi) -> list[str]:
    """The requests for ConfigMaps so far."""
    return [path for path in api.asked if path.startswith("/api/v1/configmaps")]


def test_a_cluster_autoscaler_is_looked_for_once(explain: Explain, api: StaticApi) -> None:
    """Only in a large cluster, and only if the webhook could write a short list."""
    explain("volume/pvc-disk")
    grow(api)
    explain("volume/pvc-disk --shortlist=off")
    assert asked_for_config_maps(api) == []
    status = builders.cluster_autoscaler_status("scaling")
    api.objects["/api/v1/namespaces/scaling/configmaps/cluster-autoscaler-status"] = status
    items = explain("volume/pvc-disk volume/pvc-disk").found["items"]
    assert [(found["shortlist"], found["notes"]) for found in items] == [([], items[0]["notes"])] * 2
    assert "cluster-autoscaler" not in str(items[0]["notes"])
    (asked,) = asked_for_config_maps(api)
    assert "fieldSelector=metadata.name%3Dcluster-autoscaler-status" in asked


def test_a_cluster_autoscaler_that_is_not_known_is_said(explain: Explain, api: StaticApi) -> None:
    """Without the right to list the ConfigMap there is no short list, and one request."""
    grow(api)
    api.refuse("/api/v1/configmaps", 403, "not for you")
    note = "explained without a short list: whether cluster-autoscaler runs is not known (403 Forbidden: not for you)"
    for found in explain("volume/pvc-disk volume/pvc-disk").found["items"]:
        assert (found["decision"], found["shortlist"]) == ("preferred", [])
        assert found["notes"].count(note) == 1
    assert len(asked_for_config_maps(api)) == 1


def test_a_large_cluster_has_a_short_list(explain: Explain, api: StaticApi) -> None:
    """As the webhook chooses one from its caches, here from the nodes that were listed."""
    grow(api)
    found = explain("volume/pvc-disk").found
    assert (found["shortlist"][0], len(found["shortlist"])) == ("node-b", 64)
    assert explain("volume/pvc-disk --shortlist=off").found["shortlist"] == []
    api.objects["/api/v1/nodes/more-100"]["metadata"].setdefault("labels", {})["karpenter.sh/nodepool"] = "default"
    assert explain("volume/pvc-disk").found["shortlist"] == []


def test_a_vm_whose_share_manager_is_stopped_is_followed(explain: Explain, api: StaticApi) -> None:
    """vm/NAME shows it, if the share-manager has no running pod."""
    assert explain("vm/db").found["followers"] == []
    del api.objects[POD]
    assert explain("vm/db").found["followers"] == [VOLUME]


def test_a_missing_volume_is_named_with_its_place(explain: Explain, api: StaticApi) -> None:
    """In Longhorn's namespace, whatever namespace the user gave."""
    ran = explain("volume/nope")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: volume/nope: no Volume nope in namespace longhorn-system of {api.origin}; ")


def test_a_missing_kind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message differs from that about a missing object."""
    with StaticApi([], installed=["kubevirt.io"]) as bare:
        ran = Explain(bare, tmp_path, capsys)("volume/nope")
    expected = f"volume/nope: {bare.origin} has no volumes.longhorn.io; expected a cluster with Longhorn"
    assert (ran.code, ran.err) == (2, f"error: {expected}\n")
