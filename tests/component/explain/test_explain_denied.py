"""explain against an API server that denies, lacks or fails: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import KUBEVIRT, Explain, objects
from support.drivers.serving import cluster, write_cluster
from support.fakes.static_api import StaticApi
from support.models.model_api import refusal

from webhook import cli


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"items": [{"metadata": {"name": 7}}]}'], ids=["no JSON", "no list", "a wrong field"]
)
def test_a_list_that_cant_be_read_is_no_list(body: bytes, explain: Explain, api: StaticApi) -> None:
    """If a part of a list can't be read, the note says so."""
    api.refuse("/api/v1/nodes", 200, body=body)
    ran = explain("pod/virt-launcher-db-now")
    start = "not read, so that the webhook, which reads as its service account, can decide otherwise: pods and nodes "
    assert any(note.startswith(f"{start}(/api/v1/nodes: ") for note in ran.found["notes"])


VMS: Final = f"{KUBEVIRT}/virtualmachines"
POD: Final = "/api/v1/namespaces/vms/pods/virt-launcher-db-now"


def test_a_pod_that_may_be_listed_only_is_explained(explain: Explain, api: StaticApi) -> None:
    """As the webhook's own account may: the pod comes from a list of its name."""
    expected = explain("pod/virt-launcher-db-now").found
    api.refuse(POD, 403, "get is not for you")
    assert explain("pod/virt-launcher-db-now").found == expected
    assert f"{POD.rpartition('/')[0]}?limit=100&fieldSelector=metadata.name%3Dvirt-launcher-db-now" in api.asked


def test_a_vm_that_is_nested_deeper_than_python_follows_is_explained(explain: Explain, api: StaticApi) -> None:
    """An API server stores such an object, for anybody who may create one."""
    expected, path = explain("vm/db").found, f"{VMS}/db"
    body = json.dumps(api.objects[path] | {"x": 0}).encode()
    api.refuse(path, 200, body=body.replace(b'"x": 0', b'"x": ' + b"[" * 9_000 + b"]" * 9_000))
    assert explain("vm/db").found == expected


def test_a_missing_kind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message differs from that about a missing object."""
    with StaticApi(cluster(), installed=["longhorn.io"]) as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        assert cli.main(["explain", "vm/db", "--kubeconfig", str(kubeconfig)]) == 2
        expected = f"Error: vm/db: {api.origin} has no virtualmachines.kubevirt.io; expected a cluster with KubeVirt\n"
    assert capsys.readouterr() == ("", expected)


NO_SERVER: Final = "which no API server answers to /version; expected an API server"
ANSWERS: Final[dict[str, tuple[str, int, bytes, str]]] = {
    "the page of a proxy is no VM": (VMS, 200, b"<html>", "Error: vm/db: got an answer that is not an object ("),
    "a 404 of something on the way": (VMS, 404, b"<html>not here", "404: <html>not here"),
    "another server": ("/version", 404, b"<html>not here", f": got 404: <html>not here, {NO_SERVER}"),
    "a page for a login": ("/version", 200, b"<html>log in", f": got 200: <html>log in, {NO_SERVER}"),
    "a proxy": ("/version", 403, b"denied", f": got 403: denied, {NO_SERVER}"),
}


@pytest.mark.parametrize("row", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_of_another_server_is_one_sentence(
    explain: Explain, api: StaticApi, row: tuple[str, int, bytes, str]
) -> None:
    """It is what was answered, without advice about permissions. It is not an absent object."""
    path, code, body, said = row
    api.refuse(path, code, body=body)
    ran = explain("vm/db")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert said in ran.err


def test_without_an_api_server_there_is_no_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the address and the cause; exit code 2.

    This holds for a file, too: its claims would seem lost.
    """
    with StaticApi([]) as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    file = write_cluster(tmp_path / "vm.json", [a_vm("disk")])
    for asked in (["vm/db"], ["-f", str(file)]):
        assert cli.main(["explain", *asked, "--kubeconfig", str(kubeconfig)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"Error: {api.origin}: can't connect to {api.url.removeprefix('http://')}: ")
        assert "; expected an API server: check the kubeconfig's server" in err


def test_without_a_kubeconfig_the_error_names_the_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The missing file, and the way without a live cluster."""
    assert cli.main(["explain", "vm/db", "--kubeconfig", str(tmp_path / "none")]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(f"Error: {tmp_path / 'none'}: no such file; expected a kubeconfig")
    assert err.endswith("; or describe the cluster: --manifests DIR\n")


def test_a_cluster_without_longhorn_has_no_share_managers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing kinds are no error: their objects are absent."""
    there = [value for value in objects() if "longhorn" not in value["apiVersion"]]
    with StaticApi(there, installed=["kubevirt.io"]) as api:
        found = Explain(api, tmp_path, capsys)("vm/db").found
    start = found["vm"]["nextStart"]
    assert (start["nodes"], start["reason"]) == ([], "ShareManagerNotFound")


def test_who_may_read_one_vm_and_list_nothing_gets_an_explanation(
    explain: Explain, api: StaticApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By GETs alone. What was not read is named, and nobody says that the VM is stopped."""
    monkeypatch.setattr(api, "_page", lambda *_: refusal(403, "Forbidden", "you may not list"))
    found = explain("vm/db").found
    assert (found["vm"]["state"], found["vm"]["nextStart"]["nodes"]) == ("unknown", ["node-a"])
    assert "(assumed)" in found["settings"]
    unread = " ".join(found["notes"])
    for what in ("whether the VM runs, and where, is not known (", "who else uses the volumes is not known ("):
        assert what in unread


@pytest.mark.parametrize(
    ("denied", "left"), {"virtualmachines": "db db01", "virtualmachineinstances": "db db01 tpm"}.items()
)
@pytest.mark.parametrize("choice", ["-n vms -l app!=x", "-A"])
def test_vms_that_could_not_be_listed_make_no_answer_whole(
    choice: str, denied: str, left: str, explain: Explain, api: StaticApi
) -> None:
    """Exit codes 0 and 1 would speak for VMs that nobody saw: the rest is explained, and the code is 2."""
    whole = explain(choice)
    assert (whole.code, whole.err) == (1, "")
    for path in (f"/apis/kubevirt.io/v1/{denied}", f"{KUBEVIRT}/{denied}"):
        api.refuse(path, 403, "denied for this test")
    ran = explain(choice)
    assert (ran.code, f"not everything could be read: {denied}" in ran.err) == (2, True), ran.err
    assert " ".join(each["object"]["name"] for each in ran.found["items"]) == left


@pytest.mark.parametrize("nodes", ["/api/v1/nodes", "/apis/longhorn.io/v1beta2/namespaces/longhorn-system/nodes"])
def test_without_a_node_nobody_knows_that_the_vm_would_gain(nodes: str, explain: Explain, api: StaticApi) -> None:
    """No VM may be able to start there. The note says what was not read, and the exit code is 2."""
    assert explain("vm/db").code == 0
    for path in (nodes, f"{nodes}/node-a"):
        api.refuse(path, 403, "not for you")
    ran = explain("vm/db")
    assert (ran.code, any("could not be read (403" in note for note in ran.found["notes"])) == (2, True), ran
