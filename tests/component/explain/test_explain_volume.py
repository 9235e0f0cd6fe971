"""explain for share-manager pods of a live cluster: by volume and by pod, and which objects it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import LONGHORN, Explain, live
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.scenarios import cold_start
from support.scenarios.cold_start import PASSPHRASE, VOLUME, a_class, a_volume

DECIDED = "preferred on node-a: ConsumerOnNode: for a test"
POD = f"/api/v1/namespaces/longhorn-system/pods/share-manager-{VOLUME}"


def placed() -> dict[str, Any]:
    """The share-manager pod of an encrypted volume on node-a, as the webhook patched it."""
    affinity = builders.node_affinity(preferred={"node-a": 100})
    pod = cold_start.encrypted(nodeName="node-a", affinity=affinity)
    record = '{"preferred":[["node-a",100,1]],"owner":"5b1c5a2e-7c1b-4b0e-9d68-0d5a4f1f3c77"}'
    pod["metadata"]["annotations"] |= {builders.DECISION: DECIDED, builders.WRITTEN: record}
    return {**pod, "status": {"phase": "Running"}}


@pytest.fixture
def stored() -> list[builders.Object]:
    """VM `db` on node-b, its volume, and the share-manager pod, which is still on node-a."""
    return [*cold_start.cluster(), live(a_vm("disk"), "db"), a_volume(), a_class(), placed()]


@pytest.mark.parametrize("output", ["text", "yaml", "json"])
@pytest.mark.parametrize("words", ["volume/pvc-disk", f"pod/share-manager-{VOLUME} -n longhorn-system"])
def test_the_passphrase_is_not_printed(words: str, output: str, explain: Explain, api: StaticApi) -> None:
    """The pod that explain reads has the passphrase."""
    assert PASSPHRASE in str(api.objects[POD])
    ran = explain(words, output=output)
    assert "share-manager-pvc-disk" in ran.out
    assert PASSPHRASE not in ran.out + ran.err


def test_a_volume_without_a_claim_is_shown_as_unclaimed(explain: Explain, api: StaticApi) -> None:
    """Nothing uses the volume, and explain lists no virt-launcher pods."""
    del api.objects[f"/api/v1/persistentvolumes/{VOLUME}"]
    api.objects[f"{LONGHORN}/volumes/{VOLUME}"] = {**a_volume(), "status": None}
    ran = explain("volume/pvc-disk")
    assert (ran.code, ran.found["reason"], ran.found["volume"]["claims"]) == (1, "VolumeUnclaimed", [])
    assert not [path for path in api.asked if path.startswith("/api/v1/namespaces/vms/pods")]


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


def test_a_missing_kind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message differs from that about a missing object."""
    with StaticApi([], installed=["kubevirt.io"]) as bare:
        ran = Explain(bare, tmp_path, capsys)("volume/nope")
    expected = f"volume/nope: {bare.origin} has no volumes.longhorn.io; expected a cluster with Longhorn"
    assert (ran.code, ran.err) == (2, f"error: {expected}\n")
