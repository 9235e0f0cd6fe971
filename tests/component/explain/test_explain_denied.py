"""explain against an API server that denies, lacks or fails: what it prints, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from support.drivers.explaining import a_vm
from support.drivers.explaining_live import CLAIMS, KUBEVIRT, LONGHORN, Explain, objects
from support.drivers.serving import cluster, write_cluster
from support.fakes.static_api import StaticApi

from webhook import cli

pytestmark = pytest.mark.usefixtures("no_environment")


DENIED_ROWS: Final = {
    "nodes": ("/api/v1/nodes", "preferred", "NodeLookupFailed", ["node-a"]),
    "nodes.longhorn.io": (f"{LONGHORN}/nodes", "preferred", "NodeLookupFailed", ["node-a"]),
    "share-manager pods": (
        "/api/v1/namespaces/longhorn-system/pods",
        "preferred",
        "ShareManagerPodUnread",
        ["node-a", "node-b", "node-c"],
    ),
    "claims": (CLAIMS, "unchanged", "ClaimLookupFailed", ["node-a", "node-b", "node-c"]),
    "volumes": ("/api/v1/persistentvolumes", "unchanged", "ClaimLookupFailed", ["node-a", "node-b", "node-c"]),
}


@pytest.mark.parametrize(("path", "decision", "reason", "nodes"), DENIED_ROWS.values(), ids=DENIED_ROWS)
def test_what_may_not_be_read_counts_as_it_does_for_the_server(  # noqa: PLR0917 - fixtures and a row
    path: str, decision: str, reason: str, nodes: list[str], explain: Explain, api: StaticApi
) -> None:
    """After a 403 explain decides on the other objects.

    Notes have the API server's words and the user's missing permission.
    """
    api.refuse(path, 403, 'nodes is forbidden: User "alice" cannot get resource "x"')
    found = explain("vm/db").found
    assert (found["decision"], found["reason"]) == (decision, reason)
    assert 'User "alice" cannot get resource "x"' in found["sentence"]
    assert [node["name"] for node in found["nodes"]] == nodes
    assert any(note.startswith("you may not read every object that explain needs") for note in found["notes"])
    shown_less = any(
        note.startswith(
            "only the nodes of the claims' share-managers are shown, because the nodes could not be listed: 403 "
        )
        for note in found["notes"]
    )
    assert shown_less == (len(nodes) == 1)


UNSHOWN_ROWS: Final = {
    "the instance": (
        f"{KUBEVIRT}/virtualmachineinstances",
        "vm/db",
        "the current pods could not be read: 403 Forbidden: ",
    ),
    "its pods": ("/api/v1/namespaces/vms/pods", "vm/db", "the current pods could not be read: 403 Forbidden: "),
    "the claims of backend storage": (
        CLAIMS,
        "vm/tpm",
        "backend storage: claim persistent-state-for-tpm-* counts as absent",
    ),
}


@pytest.mark.parametrize(("path", "words", "note"), UNSHOWN_ROWS.values(), ids=UNSHOWN_ROWS)
def test_what_could_not_be_shown_is_noted(path: str, words: str, note: str, explain: Explain, api: StaticApi) -> None:
    """An object that decides nothing is missing from the explanation, and a note says so."""
    api.refuse(path, 403, "not for you")
    (told,) = [told for told in explain(words).found["notes"] if told.startswith(note)]
    assert "not for you" in told


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"items": [{"metadata": {"name": 7}}]}'], ids=["no JSON", "no list", "a wrong field"]
)
def test_a_list_that_cant_be_read_is_no_list(body: bytes, explain: Explain, api: StaticApi) -> None:
    """If a part of a list can't be read, no node of the list is shown."""
    api.refuse("/api/v1/nodes", 200, body=body)
    found = explain("vm/tpm").found
    start = "only the nodes of the claims' share-managers are shown, because the nodes could not be listed: "
    assert any(note.startswith(f"{start}/api/v1/nodes: ") for note in found["notes"])


POD: Final = "/api/v1/namespaces/vms/pods/virt-launcher-db-now"


def test_a_pod_that_may_be_listed_only_is_explained(explain: Explain, api: StaticApi) -> None:
    """As the webhook's own account may: the pod comes from a list of its name."""
    expected = explain("pod/virt-launcher-db-now").found
    api.refuse(POD, 403, "get is not for you")
    assert explain("pod/virt-launcher-db-now").found == expected
    assert [path for path in api.asked if "metadata.name" in path] == [
        f"{POD.rpartition('/')[0]}?limit=100&fieldSelector=metadata.name%3Dvirt-launcher-db-now"
    ]


def test_a_missing_pod_that_may_be_listed_only_is_missing(explain: Explain, api: StaticApi) -> None:
    """The empty list proves that the pod does not exist."""
    api.refuse(f"{POD}-no", 403, "get is not for you")
    assert explain("pod/virt-launcher-db-now-no").err.startswith(
        "error: pod/virt-launcher-db-now-no: no Pod virt-launcher-db-now-no in namespace vms of "
    )


def test_a_pod_that_may_be_neither_read_nor_listed_names_the_right_to_read(explain: Explain, api: StaticApi) -> None:
    """The sentence is that of the GET."""
    api.refuse(POD, 403, "get is not for you")
    api.refuse(POD.rpartition("/")[0], 403, "list is not for you")
    assert explain("pod/virt-launcher-db-now").err.startswith(
        "error: pod/virt-launcher-db-now: 403 Forbidden: get is not for you ("
    )


MISSING_ROWS: Final = {
    "a VM": ("vm/nope", "vm/nope: no VirtualMachine nope in namespace vms of {origin}; check the name, "),
    "as it was typed": (
        "virtualmachines.kubevirt.io/nope",
        "virtualmachines.kubevirt.io/nope: no VirtualMachine nope in ",
    ),
    "a pod": ("pods nope", "pods/nope: no Pod nope in namespace vms of {origin}; "),
    "another namespace": ("vm/db -n other", "vm/db: no VirtualMachine db in namespace other of {origin}; "),
    "another context": (
        "vm/db --context other",
        "vm/db: no VirtualMachine db in namespace other of context other, {url}",
    ),
    "no namespace": (
        "vm/db -n ..",
        "vm/db: '..' can't be a name in Kubernetes ({origin}, namespace ..); expected the object",
    ),
}


@pytest.mark.parametrize(("words", "problem"), MISSING_ROWS.values(), ids=MISSING_ROWS)
def test_a_missing_object_is_named_with_its_place(words: str, problem: str, explain: Explain, api: StaticApi) -> None:
    """One sentence: the object, its namespace, the cluster, and what to check."""
    ran = explain(words)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert ran.err.startswith(f"error: {problem.format(url=api.url, origin=api.origin)}")


def test_all_missing_objects_are_named(explain: Explain) -> None:
    """After the explanations of the others, which are printed as for several objects."""
    ran = explain("vm/x vm/db pod/y")
    assert ran.code == 2
    assert [item["object"]["name"] for item in json.loads(ran.out)["items"]] == ["db"]
    assert [line.split(":")[1] for line in ran.err.splitlines()] == [" vm/x", " pod/y"]


def test_a_missing_kind_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message differs from that about a missing object."""
    with StaticApi(cluster(), installed=["longhorn.io"]) as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        assert cli.main(["explain", "vm/db", "--kubeconfig", str(kubeconfig)]) == 2
        expected = f"error: vm/db: {api.origin} has no virtualmachines.kubevirt.io; expected a cluster with KubeVirt\n"
    assert capsys.readouterr() == ("", expected)


REFUSED_ROWS: Final = {
    "forbidden": (
        (f"{KUBEVIRT}/virtualmachines", 403, 'User "alice" cannot get resource "virtualmachines"'),
        'vm/db: 403 Forbidden: User "alice" cannot get resource "virtualmachines" ({origin}, namespace vms); expected',
    ),
    "failing": (
        (f"{KUBEVIRT}/virtualmachines", 500, "etcd"),
        "vm/db: 500 InternalServerError: etcd ({origin}, namespace vms",
    ),
    "unauthorized": (("/version", 401, "Unauthorized"), "{origin}: 401 Unauthorized: Unauthorized; expected "),
    "not ready": (
        ("/version", 503, "starting"),
        "{origin}: 503 ServiceUnavailable: starting; expected an API server that is ",
    ),
}


@pytest.mark.parametrize(("refusal", "problem"), REFUSED_ROWS.values(), ids=REFUSED_ROWS)
def test_what_is_refused_is_one_sentence(
    refusal: tuple[str, int, str], problem: str, explain: Explain, api: StaticApi
) -> None:
    """The server, its words, and what to do. Explain makes no decision if the cluster refuses everything."""
    api.refuse(*refusal)
    ran = explain("vm/db")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert ran.err.startswith(f"error: {problem.format(url=api.url, origin=api.origin)}")
    assert "secret-token" not in ran.err


def test_an_answer_that_is_not_an_object_is_refused(explain: Explain, api: StaticApi) -> None:
    """The HTML page of a proxy is not a VM."""
    api.refuse(f"{KUBEVIRT}/virtualmachines", 200, body=b"<html>")
    ran = explain("vm/db")
    assert ran.code == 2
    assert ran.err.startswith("error: vm/db: got an answer that is not an object (")


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
        assert err.startswith(f"error: {api.origin}: can't connect to {api.url.removeprefix('http://')}: ")
        assert "; expected an API server: check the kubeconfig's server" in err


def test_without_a_kubeconfig_the_error_names_the_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The missing file, and the way without a live cluster."""
    assert cli.main(["explain", "vm/db", "--kubeconfig", str(tmp_path / "none")]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(f"error: {tmp_path / 'none'}: no such file; expected a kubeconfig")
    assert err.endswith("; or describe the cluster: --manifests DIR\n")


def test_the_candidate_of_a_pod_without_an_opt_in_is_evaluated(explain: Explain, api: StaticApi) -> None:
    """If the nodes may not be listed, explain reads the candidate by itself, for information."""
    api.refuse(f"{LONGHORN}/nodes", 403, "no list for you")
    found = explain("pod/virt-launcher-out").found
    assert (found["reason"], [node["name"] for node in found["nodes"]]) == ("NotOptedIn", ["node-a"])
    assert found["nodes"][0]["reason"] == "NodeLookupFailed"


def test_a_cluster_without_longhorn_has_no_share_managers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing kinds are no error: their objects are absent."""
    there = [value for value in objects() if "longhorn" not in value["apiVersion"]]
    with StaticApi(there, installed=["kubevirt.io"]) as api:
        found = Explain(api, tmp_path, capsys)("vm/db").found
    assert (found["decision"], found["reason"]) == ("unchanged", "ShareManagerNotFound")
    assert {node["reason"] for node in found["nodes"]} == {"NodeFeasible", "NodeCordoned"}


def test_an_object_that_cant_be_read_is_named_as_it_was_asked_for(explain: Explain, api: StaticApi) -> None:
    """The object has no file and no line, but the message names its field."""
    vm = api.objects[f"{KUBEVIRT}/virtualmachines/db"]
    api.objects[f"{KUBEVIRT}/virtualmachines/db"] = {**vm, "spec": {"template": {"spec": {"volumes": 7}}}}
    ran = explain("vm/db")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: vm/db: VirtualMachine: spec.template.spec.volumes: got a number, expected a list\n"
