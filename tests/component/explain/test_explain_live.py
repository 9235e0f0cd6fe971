"""explain against an API server: objects by name, in a live cluster; and which lists it asks for."""

from __future__ import annotations

from pathlib import Path

from support.drivers.explaining import a_vm
from support.drivers.explaining_live import CLAIMS, KUBEVIRT, Explain
from support.drivers.serving import write_cluster
from support.fakes.static_api import StaticApi
from support.objects import builders


def test_a_file_is_explained_in_the_live_cluster(explain: Explain, api: StaticApi, tmp_path: Path) -> None:
    """An object that does not exist yet; without a namespace of its own it is in the namespace of the context."""
    file = write_cluster(tmp_path / "new.json", [a_vm("data", name="new")])
    ran = explain(f"-f {file}")
    assert (ran.found["object"]["namespace"], ran.found["vm"]["nextStart"]["nodes"]) == ("vms", ["node-b"])
    assert ran.found["cluster"] == api.origin
    assert explain(f"-f {file} -n other").found["vm"]["volumes"][0]["reason"] == "ClaimNotFound"


PODS = "/api/v1/pods"


def asked(api: StaticApi, collection: str) -> list[str]:
    """The requests for all objects of a collection."""
    return [path for path in api.asked if path.startswith(f"{collection}?") and "labelSelector" not in path]


def test_several_are_explained_at_once(explain: Explain, api: StaticApi) -> None:
    """Names and flags in any order. Lists that all need are read once; the API server leaves out finished pods."""
    ran = explain("vm/db -n vms pod/virt-launcher-db-now pod/virt-launcher-db-now")
    assert [item["object"]["kind"] for item in ran.found["items"]] == ["VirtualMachine", "Pod", "Pod"]
    for listed in (f"{KUBEVIRT}/virtualmachines", "/apis/storage.k8s.io/v1/csinodes", PODS):
        (path,) = asked(api, listed)
    assert "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed" in path


def test_only_the_namespace_of_a_vm_is_listed(explain: Explain, api: StaticApi) -> None:
    """Free resources say nothing about a pod that does not exist yet."""
    explain("vm/db vmi/db")
    assert (asked(api, PODS), len(asked(api, CLAIMS))) == ([], 1)


def test_lists_are_read_by_pages(explain: Explain, api: StaticApi) -> None:
    """All nodes are known if there are more than a page holds."""
    for index in range(250):
        node = builders.node(f"more-{index:03}")
        api.objects[f"/api/v1/nodes/more-{index:03}"] = dict(node)
    assert explain("pod/virt-launcher-db-now").found["shortlist"] == []
    assert len([path for path in api.asked if path.startswith("/api/v1/nodes?")]) == 3
