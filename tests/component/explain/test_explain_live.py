"""explain against an API server: objects by name, in a live cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import CLAIMS, DECISION, LONGHORN, Explain
from support.drivers.serving import cluster, write_cluster
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.waits import MAX_WAIT_SECONDS

pytestmark = pytest.mark.usefixtures("no_environment")


@pytest.mark.parametrize("words", ["vm/db", "vmi/db", "pod/virt-launcher-db-now", "pod virt-launcher-db-now"], ids=str)
def test_an_object_is_explained_by_its_name(words: str, explain: Explain, api: StaticApi) -> None:
    """VM, VMI and pod have the decision that a pod created now would get; the origin is the API server."""
    ran = explain(words)
    assert (ran.code, ran.err) == (0, "")
    assert (ran.found["decision"], ran.found["required"]) == ("required", ["node-a"])
    assert ran.found["cluster"] == api.origin
    assert ran.found["object"]["source"] == words.replace(" ", "/")
    assert [node["name"] for node in ran.found["nodes"]] == ["node-a", "node-b", "node-c"]


def test_a_vm_that_runs_shows_its_pods(explain: Explain) -> None:
    """The text shows the earlier decision of the running pod beside the next one; finished pods are left out."""
    decided = "required on node-b: ShareManagerPod: for a test"
    pod = {"name": "virt-launcher-db-now", "phase": "Running", "node": "node-b", "decision": decided}
    assert explain("vm/db").found["running"] == [pod]
    assert explain("vmi/db").found["running"] == [pod]
    assert explain("vm/tpm").found["running"] == []
    assert explain("vm/db").found["now"]["reason"] == "VmShareManagerMoved"
    assert explain("vm/tpm").found["now"] is None
    text = explain("vm/db", output="text").out
    assert "Pods now (1):\n  POD                   PHASE    NODE    DECISION AT CREATION\n" in text
    assert f"  virt-launcher-db-now  Running  node-b  {decided}\n" in text


def test_a_pod_is_explained_as_it_was_created(explain: Explain) -> None:
    """Its node and its old pin do not count. Both are shown, and a note says so."""
    found = explain("pod/virt-launcher-db-now").found
    assert found["affinity"]["before"] is None
    assert found["running"][0]["node"] == "node-b"
    assert found["running"][0]["decision"].startswith("required on node-b")
    assert found["notes"][0].startswith("explained as if the pod were created now")
    assert found["hints"] == []


def test_a_pod_without_a_decision_shows_none(explain: Explain) -> None:
    """Without the webhook's annotation nothing was decided then; without an opt-in the pod is left unchanged now."""
    ran = explain("pod/virt-launcher-out", output="text")
    assert ran.code == 1
    assert f"virt-launcher-out  -      -     no annotation {DECISION}\n" in ran.out
    assert "Because:  NotOptedIn: " in ran.out


def test_a_file_is_explained_in_the_live_cluster(explain: Explain, api: StaticApi, tmp_path: Path) -> None:
    """An object that does not exist yet; without a namespace of its own it is in the namespace of the context."""
    file = write_cluster(tmp_path / "new.json", [a_vm("data", name="new")])
    ran = explain(f"-f {file}")
    assert (ran.found["object"]["namespace"], ran.found["required"]) == ("vms", ["node-b"])
    assert ran.found["cluster"] == api.origin
    assert explain(f"-f {file} -n other").found["claims"][0]["reason"] == "ClaimNotFound"


def test_several_are_explained_at_once(explain: Explain, api: StaticApi) -> None:
    """Names and flags in any order. Lists that all need are read once."""
    ran = explain("vm/db -n vms pod/virt-launcher-db-now")
    assert [item["object"]["kind"] for item in ran.found["items"]] == ["VirtualMachine", "Pod"]
    assert len([path for path in api.asked if path.startswith("/api/v1/nodes?")]) == 1


def test_backend_storage_is_found_by_its_label(explain: Explain) -> None:
    """The claims of the namespace are listed only for a VM with state."""
    assert [claim["claim"] for claim in explain("vm/tpm").found["claims"]] == [
        "state",
        "persistent-state-for-tpm-x2x4z",
    ]


def test_claims_are_not_listed_for_a_vm_without_state(explain: Explain, api: StaticApi) -> None:
    """Explain lists only what an explanation needs."""
    explain("vm/db")
    assert [path for path in api.asked if path.startswith(f"{CLAIMS}?")] == []


def test_lists_are_read_by_pages(explain: Explain, api: StaticApi) -> None:
    """All nodes are evaluated if there are more than a page holds."""
    for index in range(250):
        node = builders.node(f"more-{index:03}")
        api.objects[f"/api/v1/nodes/more-{index:03}"] = dict(node)
    found = explain("vm/db").found
    assert len(found["nodes"]) == 253
    assert {node["reason"] for node in found["nodes"] if "more" in node["name"]} == {"LonghornNotReady"}
    assert len([path for path in api.asked if path.startswith("/api/v1/nodes?")]) == 3


def test_a_cluster_without_longhorn_nodes_asks_for_none(explain: Explain, api: StaticApi) -> None:
    """If no nodes.longhorn.io exist, no node is excluded for the lack of one, as in the webhook."""
    for path in [path for path in api.objects if path.startswith(f"{LONGHORN}/nodes/")]:
        del api.objects[path]
    found = explain("vm/db").found
    assert found["required"] == ["node-a"]
    assert {node["reason"] for node in found["nodes"]} == {"NodeFeasible", "NodeCordoned"}


def test_manifests_need_no_api_client(tmp_path: Path) -> None:
    """The API client takes 1 s and 66 MB to import. Explain with --manifests, help and errors do not import it."""
    manifests = write_cluster(tmp_path / "cluster.json", cluster())
    vm = write_cluster(tmp_path / "vm.json", [a_vm("disk")])
    script = (
        "import sys; from webhook import cli; code = cli.main(sys.argv[1:]); "
        "sys.exit(code or ('kubernetes_asyncio' in sys.modules and 'imported'))"
    )
    words = ["explain", "-f", str(vm), "--manifests", str(manifests), "-n", "vms"]
    ended = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
        timeout=MAX_WAIT_SECONDS,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/vms"
OTHER = f"{KUBEVIRT}/virtualmachines/other"


def test_a_claim_that_another_vm_names_is_known(explain: Explain, api: StaticApi) -> None:
    """Its template does, though it does not run. Without the right to list VMs, a note says that this is not known."""
    vm = api.objects[f"{KUBEVIRT}/virtualmachines/db"]
    api.objects[OTHER] = {**vm, "metadata": {**vm["metadata"], "name": "other"}}
    assert explain("vm/db").found["reason"] == "SharedClaim"
    for kind in ("virtualmachines", "virtualmachineinstances"):
        api.refuse(f"{KUBEVIRT}/{kind}", 403, "not for you")
    found = explain("pod/virt-launcher-db-now").found
    assert found["decision"] == "required"
    unlisted = "explained without what VMs say of their starts and claims: they could not be listed"
    assert [note.partition(" (")[0] for note in found["notes"] if "VMs" in note] == [unlisted]
