"""The command explain: which objects of a file it explains, how it prints them, and its exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.drivers.explaining import CLUSTER, Ran, a_vm, as_yaml, run, settings, the_cluster

from webhook.component_base.errors import UserError
from webhook.explain.run import explain_in
from webhook.objects.documents import BadDocument
from webhook.settings import selector


def test_the_items_of_a_list_are_explained_one_by_one() -> None:
    """`kubectl get -o yaml` prints several objects as a List; each item has its own line."""
    text = as_yaml({"apiVersion": "v1", "kind": "List", "items": [a_vm("root", name="a"), a_vm("root", name="b")]})
    found = json.loads(run(text, output="json").out)["items"]
    assert [item["object"]["name"] for item in found] == ["a", "b"]
    assert found[0]["object"]["source"] == "stdin:4"
    assert found[1]["object"]["source"] != "stdin:4"


@pytest.mark.parametrize(("source", "what"), [("-", "stdin"), ("file", "file")])
def test_bytes_that_are_not_text_are_bad_input(source: str, what: str, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are an error, from stdin and from a file."""
    file = tmp_path / "file"
    file.write_bytes(b"\xff")
    path = source if source == "-" else str(file)
    with file.open(encoding="utf-8") as stdin, pytest.raises(BadDocument, match=f"{what}: not UTF-8 text"):
        explain_in(the_cluster(), settings(path), stdin=stdin, stdout=io.StringIO(), stderr=io.StringIO())


TWO = (
    CLUSTER
    + """---
{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web, namespace: other},
 spec: {template: {metadata: {labels: {app: web}}}}}
"""
)
CHOICES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "all namespaces": ({"all_namespaces": True}, ["other/web", "vms/db"]),
    "a namespace and labels": ({"selector": selector("app!=web")}, ["vms/db"]),
    "labels in all namespaces": ({"all_namespaces": True, "selector": selector("app=web")}, ["other/web"]),
    "a name in all namespaces": ({"all_namespaces": True, "names": ("vm/web",)}, ["other/web"]),
}


def chosen(cluster: str = TWO, **flags: Any) -> Ran:
    """A run over VMs that the cluster lists."""
    namespace = None if flags.get("all_namespaces") else "vms"
    return run("", cluster=cluster, **{"filename": None, "namespace": namespace, "output": "json", **flags})


@pytest.mark.parametrize(("flags", "names"), CHOICES.values(), ids=CHOICES)
def test_vms_are_chosen_as_status_chooses_them(flags: dict[str, Any], names: list[str]) -> None:
    """By namespace, labels and names. One VM is a list of one: the form depends on the options alone."""
    ran = chosen(**flags)
    objects = [each["object"] for each in json.loads(ran.out)["items"]]
    assert [f"{each['namespace']}/{each['name']}" for each in objects] == names
    assert ran.code == 1  # none asks


def test_a_name_that_no_vm_has_is_said_beside_the_others() -> None:
    """The exit code is 2, and the VM that exists is explained."""
    out = io.StringIO()
    flags: dict[str, Any] = {"filename": None, "namespace": None, "all_namespaces": True, "names": ("db", "gone")}
    with pytest.raises(UserError, match="gone: no VM of this name in any namespace"):
        explain_in(the_cluster(), settings("", **flags), stdin=io.StringIO(), stdout=out, stderr=io.StringIO())
    assert out.getvalue().startswith("VirtualMachine vms/db (vm/db)")
    with pytest.raises(UserError, match="no VM with labels app=nobody in namespace vms"):
        chosen(selector=selector("app=nobody"))


def test_a_namespace_without_a_share_manager_gives_no_answer() -> None:
    """With a wrong namespace of Longhorn no volume seems to have a share-manager, and the answer would be no."""
    elsewhere = CLUSTER.replace("namespace: longhorn-system", "namespace: storage")
    ran = run(as_yaml(a_vm("root")), cluster=elsewhere)
    assert ran.code == 2
    assert "namespace longhorn-system has no ShareManager at all" in ran.err
    assert "--longhorn-namespace storage" in ran.err
