"""The command explain: which objects of a file it explains, how it prints them, and its exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.drivers.explaining import a_pod, a_review, a_vm, a_vmi, as_yaml, explained, run, settings, the_cluster

from webhook.explain.run import explain_in
from webhook.objects.documents import BadDocument

KIND_ROWS = {
    "Pod": (a_pod("root"), "virt-launcher-db-"),
    "VirtualMachine": (a_vm("root"), "db"),
    "VirtualMachine v1alpha3": (a_vm("root", version="v1alpha3"), "db"),
    "VirtualMachineInstance": (a_vmi("root"), "db"),
    "VirtualMachineInstance v1alpha3": (a_vmi("root", version="v1alpha3"), "db"),
    "AdmissionReview": (a_review(a_pod("root")), "virt-launcher-db-"),
}


@pytest.mark.parametrize(("value", "name"), KIND_ROWS.values(), ids=KIND_ROWS)
def test_every_kind_leads_to_the_same_decision(value: dict[str, Any], name: str) -> None:
    """The decision is the one for the admission of the pod, from whatever object the pod is made."""
    found = explained(value)
    assert found["object"] == {"kind": value["kind"], "namespace": "vms", "name": name, "source": "stdin:1"}
    assert (found["decision"], found["required"]) == ("required", ["node-b"])


def test_yaml_is_the_same_value_as_json() -> None:
    """Both parse back to one value, and YAML says everything in full: no anchors, no folded lines."""
    text = run(as_yaml(a_vm("root")), output="yaml").out
    assert yaml.safe_load(text) == explained(a_vm("root"))
    assert f"\nsentence: '{explained(a_vm('root'))['sentence']}'\n" in text
    assert "&" not in text
    assert not text.startswith("---")


def test_several_objects_are_several_documents_or_items() -> None:
    """YAML has a document for each object, JSON an object with items, text a part for each object."""
    text = as_yaml(a_vm("root"), a_pod("hint"))
    kinds = ["VirtualMachine", "Pod"]
    assert [value["object"]["kind"] for value in yaml.safe_load_all(run(text, output="yaml").out)] == kinds
    assert [value["object"]["kind"] for value in json.loads(run(text, output="json").out)["items"]] == kinds
    assert "\n\n\nPod vms/virt-launcher-db- (stdin:" in run(text).out


def test_the_items_of_a_list_are_explained_one_by_one() -> None:
    """`kubectl get -o yaml` prints several objects as a List; each item has its own line."""
    text = as_yaml({"apiVersion": "v1", "kind": "List", "items": [a_vm("root", name="a"), a_vm("root", name="b")]})
    found = json.loads(run(text, output="json").out)["items"]
    assert [item["object"]["name"] for item in found] == ["a", "b"]
    assert found[0]["object"]["source"] == "stdin:4"
    assert found[1]["object"]["source"] != "stdin:4"


EXIT_ROWS: dict[str, tuple[list[dict[str, Any]], str, int]] = {
    "required": ([a_pod("root")], "required", 0),
    "preferred": ([a_pod("hint")], "preferred", 0),
    "unchanged": ([a_pod("root", opt_in=None)], "unchanged", 1),
    "one of two unchanged": ([a_pod("root"), a_pod("new")], "required", 1),
    "both placed": ([a_pod("root"), a_pod("hint")], "required", 0),
}


@pytest.mark.parametrize(("values", "first", "code"), EXIT_ROWS.values(), ids=EXIT_ROWS)
def test_the_exit_code_says_whether_all_were_placed(values: list[Any], first: str, code: int) -> None:
    """0 if each object gets an affinity to a node, 1 if one is left unchanged."""
    ran = run(as_yaml(*values), output="yaml")
    assert next(yaml.safe_load_all(ran.out))["decision"] == first
    assert ran.code == code


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    """With a path, explain reads no stdin; the source names the file."""
    file = tmp_path / "vm.yaml"
    file.write_text(as_yaml(a_vm("root")))
    ran = run("", source=str(file), output="json")
    assert json.loads(ran.out)["object"]["source"] == f"{file}:1"


def test_objects_without_a_namespace_are_in_the_given_one() -> None:
    """Claims are read in the given namespace; an object's own namespace has priority."""
    assert explained(a_pod("root"), namespace="other")["reason"] == "ClaimNotFound"
    pod = a_pod("root")
    pod["metadata"]["namespace"] = "vms"
    assert explained(pod, namespace="other")["decision"] == "required"


NAMESPACE_ROWS = {
    "the request's": ("vms", None, "vms"),
    "the pod's": (None, "vms", "vms"),
    "the request's before the pod's": ("vms", "other", "vms"),
    "the given one": (None, None, "given"),
    "the given one for an empty one": ("", None, "given"),
}


@pytest.mark.parametrize(("asked", "own", "expected"), NAMESPACE_ROWS.values(), ids=NAMESPACE_ROWS)
def test_the_namespace_of_a_review(asked: str | None, own: str | None, expected: str) -> None:
    """A review's own namespace counts; a review that a user wrote can lack it."""
    pod = a_pod("root")
    pod["metadata"]["namespace"] = own
    found = explained(a_review(pod, namespace=asked), namespace="given")
    assert found["object"]["namespace"] == expected
    assert (found["decision"] == "required") == (expected == "vms")
    assert found["claims"][0]["reason"] == ("ShareManagerPod" if expected == "vms" else "ClaimNotFound")


@pytest.mark.parametrize("asked", [None, ""])
def test_a_review_without_a_namespace_is_decided_in_the_given_one(asked: str | None) -> None:
    """The namespace is added to the review for core, and not only to the output."""
    assert explained(a_review(a_pod("root"), namespace=asked), namespace="vms")["decision"] == "required"


def test_other_kinds_are_left_out_and_counted() -> None:
    """One line on stderr counts the other objects by kind; stdout has only explanations."""
    service = {"apiVersion": "v1", "kind": "Service"}
    text = as_yaml(service, a_pod("root"), service, {"apiVersion": "kubevirt.io/v1beta1", "kind": "VirtualMachine"})
    ran = run(text, output="json")
    assert ran.code == 0
    assert ran.err.startswith("left out 2 Service (v1), 1 VirtualMachine (kubevirt.io/v1beta1): expected a Pod (v1)")
    assert ran.err.count("\n") == 1
    assert json.loads(ran.out)["object"]["source"] == "stdin:4"


def test_without_other_kinds_stderr_is_empty() -> None:
    """Stderr stays empty if every object is explained."""
    assert run(as_yaml(a_pod("root"))).err == ""


NOTHING_ROWS = {
    "empty": ("", "stdin: nothing to explain: got no object at all, expected a Pod (v1), "),
    "other kinds": (
        "--- {apiVersion: v1, kind: Secret}",
        "stdin: nothing to explain: got 1 Secret (v1), expected a Pod ",
    ),
}


@pytest.mark.parametrize(("text", "problem"), NOTHING_ROWS.values(), ids=NOTHING_ROWS)
def test_nothing_to_explain_is_bad_input(text: str, problem: str) -> None:
    """The error says what explain got, what it expected, and what to try."""
    with pytest.raises(BadDocument) as refused:
        run(text)
    assert str(refused.value).startswith(problem)
    assert str(refused.value).endswith("try the output of: kubectl get virtualmachine NAME -o yaml")


NO_UID = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"operation": "CREATE"}}
BAD_ROWS = {
    "syntax": ("a: [", "stdin:2: "),
    "no object": ("[]", "stdin:1: not a Kubernetes object"),
    "no request": (
        "--- {apiVersion: admission.k8s.io/v1, kind: AdmissionReview}",
        "stdin:1: AdmissionReview: request: got",
    ),
    "no uid": (json.dumps(NO_UID), "stdin:1: AdmissionReview: request: object missing required field `uid`"),
    "no spec": ("--- {apiVersion: v1, kind: Pod, metadata: {}}", "stdin:1: Pod: Object missing required field `spec`"),
    "a type": (
        "--- {apiVersion: v1, kind: Pod, metadata: {name: 1}, spec: {}}",
        "stdin:1: Pod: metadata.name: got a number, expected a string",
    ),
    "a loop": ("--- {apiVersion: v1, kind: Pod, metadata: {}, spec: &a {x: [*a]}}", "stdin:1: Pod: Circular reference"),
    "a VM without a name": (
        "--- {apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {}, spec: {template: {spec: {}}}}",
        "stdin:1: VirtualMachine: metadata.name: got nothing",
    ),
}


@pytest.mark.parametrize(("text", "problem"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_input_is_named_with_its_line(text: str, problem: str) -> None:
    """The error names the file, the line, the kind and the field."""
    with pytest.raises(BadDocument) as refused:
        run(text)
    assert str(refused.value).startswith(problem)


def test_one_error_has_the_problems_of_all_objects() -> None:
    """One run names every object that can't be read, and prints no explanation."""
    broken = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    with pytest.raises(BadDocument) as refused:
        run(as_yaml(a_pod("root"), broken, broken))
    assert [problem.partition(": ")[2] for problem in refused.value.problems] == [
        "Pod: Object missing required field `spec`"
    ] * 2


@pytest.mark.parametrize(("source", "what"), [("-", "stdin"), ("file", "file")])
def test_bytes_that_are_not_text_are_bad_input(source: str, what: str, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are an error, from stdin and from a file."""
    file = tmp_path / "file"
    file.write_bytes(b"\xff")
    path = source if source == "-" else str(file)
    with file.open(encoding="utf-8") as stdin, pytest.raises(BadDocument, match=f"{what}: not UTF-8 text"):
        explain_in(the_cluster(), settings(path), stdin=stdin, stdout=io.StringIO(), stderr=io.StringIO(), color=False)


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    """The error names the path."""
    with pytest.raises(BadDocument, match=r"absent\.yaml: No such file"):
        run("", source=str(tmp_path / "absent.yaml"))
