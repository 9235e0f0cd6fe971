"""JSON is read without YAML, whatever its form, and to the same objects."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.objects import documents
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument, Document, read_documents
from webhook.objects.files import read_file

OBJECTS: Final = [builders.node("node-a"), builders.share_manager_pod("root"), builders.persistent_volume_claim("root")]
LIST: Final = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": OBJECTS}
NESTED: Final = {"apiVersion": "v1", "kind": "List", "items": [LIST, OBJECTS[0]]}
UNTYPED: Final = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": name}} for name in "ab"]}
TEXTS: Final = {
    "indented": json.dumps(LIST, indent=4),
    "a line": json.dumps(LIST),
    "a line each, as bundle writes it": '{"apiVersion":"v1","kind":"List","items":[\n'
    + ",\n".join(map(json.dumps, OBJECTS))
    + "\n]}\n",
    "blanks around it": f"\n \n{json.dumps(LIST, indent=1)}\n\n",
    "a List in a List": json.dumps(NESTED, indent=2),
    "a typed List": json.dumps(UNTYPED, indent=2),
    "one object": json.dumps(OBJECTS[1], indent=2),
    "a letter and a slash as escapes": json.dumps(OBJECTS[0] | {"x": "\u00e9/"}).replace("/", "\\/"),
    "the same object twice": json.dumps(LIST | {"items": [OBJECTS[0]] * 2}, indent=2),
}


def read(text: str) -> list[dict[str, Any]]:
    """The value of each object."""
    return [each.value for each in read_documents(text, "f")]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_json_has_the_objects_that_yaml_has(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The YAML parser is never called for it."""
    with monkeypatch.context() as patch:
        patch.setattr(documents.msgspec.json, "decode", Mock(side_effect=ValueError))
        expected = read(text)
    with monkeypatch.context() as patch:
        patch.setattr(documents, "Loader", None)
        assert read(text) == expected


def test_a_file_of_json_is_read_without_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by what reads a cluster from it."""
    (tmp_path / "cluster.json").write_text(TEXTS["indented"], encoding="utf-8")
    monkeypatch.setattr(documents, "Loader", None)
    assert Cluster.load(tmp_path, longhorn_namespace="longhorn-system").node_names() == ["node-a"]


def test_a_wrong_field_of_json_has_the_name_of_its_object() -> None:
    """A line would be the only one of the file, as `bundle` and others write it."""
    pod = builders.share_manager_pod("root")
    pod["spec"]["nodeName"] = 12
    *_, document = read_documents(json.dumps(LIST | {"items": [OBJECTS[0], pod]}), "f")
    with pytest.raises(BadDocument, match=r"^f: Pod share-manager-root: spec\.nodeName: "):
        document.read(Pod)


def test_an_object_that_is_not_of_a_file_has_its_source_alone() -> None:
    """There is no line."""
    pod = builders.share_manager_pod("root")
    pod["spec"]["nodeName"] = 12
    with pytest.raises(BadDocument, match=r"^pods/x: Pod share-manager-root: spec\.nodeName: "):
        Document("pods/x", pod).read(Pod)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ('{"apiVersion":"v1","kind":3}', "f:2: not a Kubernetes object: kind: got a number, expected a string"),
        ('{"apiVersion":"v1","kind":"Pod"\n"x":1}', "f:3: "),
        ("3", "f:2: not a Kubernetes object: got a number, expected a mapping"),
    ],
)
def test_a_fault_has_its_line(item: str, said: str) -> None:
    """As in YAML."""
    with pytest.raises(BadDocument, match=said):
        read(f'{{"apiVersion":"v1","kind":"List","items":[\n{item}\n]}}')


@pytest.mark.parametrize("between", ["\n", ""])
def test_json_documents_one_after_another_are_named(between: str) -> None:
    """As jq and a loop of kubectl print them. The error spoke of YAML."""
    pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'
    with pytest.raises(BadDocument, match=r"^f:\d: a second JSON document; expected one, or a List"):
        list(read_documents(f"{pod}{between}{pod}", "f"))


def test_a_compressed_file_is_named(tmp_path: Path) -> None:
    """It was `not UTF-8 text`."""
    file = tmp_path / "cluster.json.gz"
    file.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(BadDocument, match=r"cluster\.json\.gz: compressed by gzip; expected text: gunzip it first$"):
        list(read_file(file))
