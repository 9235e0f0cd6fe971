"""explain against an API server: objects by name, and the live cluster's facts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import builders
import pytest
from explaining import a_vm
from explaining_live import CLAIMS, DECISION, LONGHORN, Explain
from patience import PATIENCE_SECONDS
from serving import cluster, write_cluster
from static_api import StaticApi

pytestmark = pytest.mark.usefixtures("no_environment")


@pytest.mark.parametrize("words", ["vm/db", "vmi/db", "pod/virt-launcher-db-now", "pod virt-launcher-db-now"], ids=str)
def test_an_object_is_explained_by_its_name(words: str, explain: Explain, api: StaticApi) -> None:
    """VM, instance and pod lead to the decision that a pod created now would get; the origin is the API server."""
    ran = explain(words)
    assert (ran.code, ran.err) == (0, "")
    assert (ran.found["decision"], ran.found["required"]) == ("required", ["node-a"])
    assert ran.found["cluster"] == api.origin
    assert ran.found["object"]["source"] == words.replace(" ", "/")
    assert [node["name"] for node in ran.found["nodes"]] == ["node-a", "node-b", "node-c"]


def test_a_vm_that_runs_shows_its_pods(explain: Explain) -> None:
    """Beside the next start's decision stands what was decided for the pod that runs; ended pods are left out."""
    decided = "required on node-b: ShareManagerPod: for a test"
    pod = {"name": "virt-launcher-db-now", "phase": "Running", "node": "node-b", "decision": decided}
    assert explain("vm/db").found["running"] == [pod]
    assert explain("vmi/db").found["running"] == [pod]
    assert explain("vm/tpm").found["running"] == []
    text = explain("vm/db", output="text").out
    assert "Pods now (1):\n  POD                   PHASE    NODE    DECIDED WHEN IT WAS CREATED\n" in text
    assert f"  virt-launcher-db-now  Running  node-b  {decided}\n" in text


def test_a_pod_is_judged_as_it_was_created(explain: Explain) -> None:
    """Its node and its old pin do not count; both are shown, and a note says what was done."""
    found = explain("pod/virt-launcher-db-now").found
    assert found["affinity"]["before"] is None
    assert found["running"][0]["node"] == "node-b"
    assert found["running"][0]["decision"].startswith("required on node-b")
    assert found["notes"][0].startswith("judged as if it were created now")
    assert found["hints"] == []


def test_a_pod_that_the_webhook_never_saw_says_so(explain: Explain) -> None:
    """No annotation of ours: nothing was decided then, and one that did not opt in is left unchanged now."""
    ran = explain("pod/virt-launcher-out", output="text")
    assert ran.code == 1
    assert f"virt-launcher-out  -      -     no annotation {DECISION}\n" in ran.out
    assert "Because:  NotOptedIn: " in ran.out


def test_a_file_is_judged_on_the_live_cluster(explain: Explain, api: StaticApi, tmp_path: Path) -> None:
    """An object that does not exist yet, in the context's namespace where it states none."""
    file = write_cluster(tmp_path / "new.json", [a_vm("data", name="new")])
    ran = explain(f"-f {file}")
    assert (ran.found["object"]["namespace"], ran.found["required"]) == ("vms", ["node-b"])
    assert ran.found["cluster"] == api.origin
    assert explain(f"-f {file} -n other").found["claims"][0]["reason"] == "ClaimNotFound"


def test_several_are_explained_at_once(explain: Explain, api: StaticApi) -> None:
    """Names and flags in any order; what all share is listed once."""
    ran = explain("vm/db -n vms pod/virt-launcher-db-now")
    assert [item["object"]["kind"] for item in ran.found["items"]] == ["VirtualMachine", "Pod"]
    assert len([path for path in api.asked if path.startswith("/api/v1/nodes?")]) == 1


def test_backend_storage_is_found_by_its_label(explain: Explain) -> None:
    """The namespace's claims are listed where a VM has state, and only there."""
    assert [claim["claim"] for claim in explain("vm/tpm").found["claims"]] == ["disk", "persistent-state-for-tpm-x2x4z"]


def test_claims_are_not_listed_for_a_vm_without_state(explain: Explain, api: StaticApi) -> None:
    """Nothing is asked that no answer needs."""
    explain("vm/db")
    assert [path for path in api.asked if path.startswith(f"{CLAIMS}?")] == []


def test_lists_are_read_by_pages(explain: Explain, api: StaticApi) -> None:
    """More nodes than a page holds are all judged."""
    for index in range(250):
        node = builders.node(f"more-{index:03}")
        api.objects[f"/api/v1/nodes/more-{index:03}"] = dict(node)
    found = explain("vm/db").found
    assert len(found["nodes"]) == 253
    assert {node["reason"] for node in found["nodes"] if "more" in node["name"]} == {"LonghornNotReady"}
    assert len([path for path in api.asked if path.startswith("/api/v1/nodes?")]) == 3


def test_a_cluster_without_longhorn_nodes_asks_for_none(explain: Explain, api: StaticApi) -> None:
    """Where no nodes.longhorn.io are at all, no node is refused for it, as the server would."""
    for path in [path for path in api.objects if path.startswith(f"{LONGHORN}/nodes/")]:
        del api.objects[path]
    found = explain("vm/db").found
    assert found["required"] == ["node-a"]
    assert {node["reason"] for node in found["nodes"]} == {"NodeFeasible", "NodeCordoned"}


def test_manifests_need_no_api_client(tmp_path: Path) -> None:
    """It takes a second and 66 MB to import: explain over files does without, and so do help and errors."""
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
        timeout=PATIENCE_SECONDS,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
