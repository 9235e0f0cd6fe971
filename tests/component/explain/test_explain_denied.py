"""explain against an API server that denies, lacks or fails: what it prints, and its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import KUBEVIRT, Explain, objects
from support.drivers.serving import cluster, write_cluster
from support.fakes.static_api import StaticApi

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


POD: Final = "/api/v1/namespaces/vms/pods/virt-launcher-db-now"


def test_a_pod_that_may_be_listed_only_is_explained(explain: Explain, api: StaticApi) -> None:
    """As the webhook's own account may: the pod comes from a list of its name."""
    expected = explain("pod/virt-launcher-db-now").found
    api.refuse(POD, 403, "get is not for you")
    assert explain("pod/virt-launcher-db-now").found == expected
    assert [path for path in api.asked if "metadata.name" in path] == [
        f"{POD.rpartition('/')[0]}?limit=100&fieldSelector=metadata.name%3Dvirt-launcher-db-now"
    ]


def test_a_missing_kind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message differs from that about a missing object."""
    with StaticApi(cluster(), installed=["longhorn.io"]) as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        assert cli.main(["explain", "vm/db", "--kubeconfig", str(kubeconfig)]) == 2
        expected = f"Error: vm/db: {api.origin} has no virtualmachines.kubevirt.io; expected a cluster with KubeVirt\n"
    assert capsys.readouterr() == ("", expected)


def test_an_answer_that_is_not_an_object_is_refused(explain: Explain, api: StaticApi) -> None:
    """The HTML page of a proxy is not a VM."""
    api.refuse(f"{KUBEVIRT}/virtualmachines", 200, body=b"<html>")
    ran = explain("vm/db")
    assert ran.code == 2
    assert ran.err.startswith("Error: vm/db: got an answer that is not an object (")


@pytest.mark.parametrize(("code", "body"), [(404, b"<html>not here"), (200, b"<html>log in"), (403, b"denied")])
def test_another_server_is_named_at_once(explain: Explain, api: StaticApi, code: int, body: bytes) -> None:
    """The sentence has what it answered, and no advice about permissions."""
    api.refuse("/version", code, body=body)
    ran = explain("vm/db")
    assert ran.code == 2
    assert f": got {code}: {body.decode()}, which no API server answers to /version; expected an API server" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_404_of_something_on_the_way_is_not_an_absent_object(explain: Explain, api: StaticApi) -> None:
    """The API server has its own words for both kinds of absence."""
    api.refuse(f"{KUBEVIRT}/virtualmachines", 404, body=b"<html>not here")
    ran = explain("vm/db")
    assert ran.code == 2
    assert "404: <html>not here" in ran.err


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


def test_who_may_read_one_vm_and_list_nothing_gets_an_explanation(explain: Explain, api: StaticApi) -> None:
    """By GETs alone. What was not read is named."""
    for path in (
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/namespaces/vms/pods",
        f"{KUBEVIRT}/virtualmachineinstances",
        "/apis/admissionregistration.k8s.io/v1",
    ):
        api.refuse(path, 403, "you may not")
    found = explain("vm/db").found
    assert found["vm"]["nextStart"]["nodes"] == ["node-a"]
    assert "(assumed)" in found["settings"]
    unread = " ".join(found["notes"])
    for what in (
        "whether the VM runs, and where, is not known (",
        "who else uses the volumes is not known (",
        "node-a",
    ):
        assert what in unread
