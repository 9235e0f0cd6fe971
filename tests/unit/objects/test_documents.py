"""YAML and JSON, and files of them: to objects with their lines, or to a sentence with the line of the fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.objects import documents
from webhook.objects.documents import BadDocument, Document, read_documents
from webhook.objects.files import read_file

HEAD = "apiVersion: v1\nkind: Pod\n"
JSON_HEAD = '"apiVersion": "v1", "kind": "Pod"'
LIST = '{"apiVersion":"v1","kind":"List","items":[\n%s\n]}'
SECOND = "a second JSON document; expected one, or a List of them, as kubectl get -o json prints it"
OBJECTS = [builders.node("node-a"), builders.share_manager_pod("root"), builders.persistent_volume_claim("root")]
ANY = OBJECTS[1] | {"x": [1, -2, 1.5, True, None, {"a": []}, 'n\u00f6de \U0001f600 tab\t quote" back\\slash a: b # c']}
WRONG = OBJECTS[1] | {"spec": {"nodeName": 12}}


def one(text: str) -> Document:
    """The only object in a text."""
    (document,) = read_documents(text, "f")
    return document


def problem(text: str) -> str:
    """The message about a text that can't be read."""
    with pytest.raises(BadDocument) as caught:
        list(read_documents(text, "f"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("null\n", [], id="a null document"),
        pytest.param(HEAD, ["Pod"], id="one"),
        pytest.param(f"{HEAD}---\napiVersion: v1\nkind: Node\n---\n", ["Pod", "Node"], id="two, and a marker behind"),
        pytest.param(f"{{{JSON_HEAD}}}", ["Pod"], id="JSON"),
        pytest.param(f"{{{JSON_HEAD}}}\n---\n{{\t{JSON_HEAD}}}\n", ["Pod", "Pod"], id="JSON documents with tabs"),
        pytest.param("apiVersion: v1\nkind: List\nitems: []\n", [], id="an empty List"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Node}]\n",
            ["Pod", "Node"],
            id="a List",
        ),
        pytest.param("apiVersion: v1\nkind: NodeList\nitems: [{}, {}]\n", ["Node", "Node"], id="a typed List"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems: [{kind: NodeList, items: [{}]}]\n", ["Node"], id="a List in a List"
        ),
    ],
)
def test_objects_are_read_as_kubectl_reads_them(text: str, kinds: list[str]) -> None:
    """Documents, Lists and JSON; empty documents are left out."""
    assert [document.kind for document in read_documents(text, "f")] == kinds


def test_a_document_has_its_source_and_line() -> None:
    """Also for an item of a List."""
    text = f"# first\n{HEAD}---\napiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Node\n"
    pod, node = read_documents(text, "f.yaml")
    assert (pod.place, pod.source, pod.api_version, pod.kind) == ("f.yaml:2", "f.yaml", "v1", "Pod")
    assert (node.place, node.kind) == ("f.yaml:8", "Node")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", id="a timestamp stays a text"),
        pytest.param("1", 1, id="a number"),
        pytest.param("true", True, id="a boolean"),
        pytest.param("~", None, id="a null"),
        pytest.param("{1: a}", {"1": "a"}, id="a number as a key"),
        pytest.param("{<<: {a: 1, b: 1}, b: 2}", {"a": 1, "b": 2}, id="a merge"),
    ],
)
def test_scalars_are_what_the_api_server_would_be_sent(text: str, value: Any) -> None:
    """There are no dates, and keys are text."""
    assert one(f"{HEAD}x: {text}\n").value["x"] == value


REPEATED: Final = ", ".join(["[&a0 x", *(f"&a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 64)), "*a63]"])
MERGED: Final = ", ".join(["[&a0 {x: 1}", *(f"&a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 64)), "*a63]"])


def test_aliases_that_repeat_little_are_read() -> None:
    """Each document has anchors of its own."""
    text = f"{HEAD}x: &a {{b: c}}\ny: [*a, *a]\nz: {{<<: *a}}\n"
    found = list(read_documents(f"{text}---\n{text}", "f"))
    assert [each.value["y"] for each in found] == [[{"b": "c"}] * 2] * 2
    assert found[1].value["z"] == {"b": "c"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("hello", ["f:1", "a string", "expected a mapping"], id="a text"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems: hello\n", ["f:1", "a string", "expected a list"], id="a List of a text"
        ),
        pytest.param("apiVersion: v1\nkind: List\n", ["f:1", "nothing", "expected a list"], id="a List of nothing"),
        pytest.param("[]", ["f:1", "a list"], id="a list"),
        pytest.param("1", ["f:1", "a number"], id="a number"),
        pytest.param("true", ["f:1", "a boolean"], id="a boolean"),
        pytest.param("{}", ["f:1", "apiVersion", "nothing"], id="an empty mapping"),
        pytest.param("\nkind: Pod\n", ["f:2", "apiVersion", "nothing"], id="no apiVersion"),
        pytest.param("apiVersion: v1\n", ["f:1", "kind", "nothing"], id="no kind"),
        pytest.param("apiVersion: 1\nkind: Pod\n", ["f:1", "apiVersion", "a number"], id="apiVersion is a number"),
        pytest.param("apiVersion: v1\nkind: List\nitems:\n- 1\n", ["f:4", "a number"], id="an item is a number"),
        pytest.param(f"{HEAD}kind: Node\n", ["f:3", "key kind is used twice"], id="a key that stands twice"),
        pytest.param(f"{HEAD}? [a]\n: 1\n", ["f:3", "a key must be a string"], id="a list as a key"),
        pytest.param(f"{HEAD}x: [1\n", ["f:"], id="a bracket that stays open"),
        pytest.param(f"{HEAD}x: *nobody\n", ["f:3", "undefined alias"], id="an unknown alias"),
        pytest.param(f"{HEAD}x: !!python/object:os.system a\n", ["f:3", "constructor"], id="a tag that would run code"),
        pytest.param(f"{HEAD}x: \x00\n", ["f"], id="a control character"),
        pytest.param(f"{HEAD}x: {'9' * 5000}\n", ["f"], id="a number without end"),
        pytest.param("&a\napiVersion: v1\nkind: List\nitems: [*a]\n", ["f:4", "aliases"], id="a List in itself"),
        pytest.param(f"{HEAD}x: &a [*a]\n", ["f:3", "aliases repeat too much"], id="a list in itself"),
        pytest.param(f"{HEAD}x: {REPEATED}\n", ["f:3", "aliases repeat too much"], id="aliases of aliases"),
        pytest.param(f"{HEAD}x: {MERGED}\n", ["f:3", "aliases repeat too much"], id="merges of merges"),
        pytest.param(f"{{{JSON_HEAD},\n,}}", ["f:2"], id="broken JSON"),
        pytest.param(LIST % '{"apiVersion":"v1","kind":3}', ["f:2", "kind: got a number"], id="a kind in JSON"),
        pytest.param(LIST % '{"apiVersion":"v1","kind":"Pod"\n"x":1}', ["f:3"], id="a comma that lacks in JSON"),
        pytest.param(LIST % "3", ["f:2", "got a number, expected a mapping"], id="an item of JSON"),
        pytest.param(f"{{{JSON_HEAD}}}{{{JSON_HEAD}}}", [SECOND], id="two JSON documents"),
    ],
)
def test_other_values_are_refused_with_file_and_line(text: str, words: list[str]) -> None:
    """Always with BadDocument, and one line for each problem."""
    message = problem(text)
    assert all(word in message for word in words), message
    assert message.startswith("f:")
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("head", "mark"),
    [
        pytest.param(f"{HEAD}x: ", "[", id="brackets"),
        pytest.param(f"{HEAD}x:\n  ", "- ", id="dashes"),
        pytest.param(f'{{{JSON_HEAD}, "x": ', "[", id="JSON"),
    ],
)
def test_a_deeply_nested_text_does_not_crash_the_interpreter(head: str, mark: str) -> None:
    """A composer that recurses on the C stack would crash it; the test therefore runs in a process of its own."""
    program = (
        "import sys; from webhook.objects.documents import BadDocument, read_documents\n"
        "try:\n"
        "    list(read_documents(sys.argv[1] + sys.argv[2] * 200_000 + 'y', 'f'))\n"
        "except BadDocument as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and text
        [sys.executable, "-c", program, head, mark], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("f:")


@pytest.mark.parametrize(
    ("text", "type_", "words"),
    [
        pytest.param(f"{HEAD}metadata: 1\nspec: {{}}\n", Pod, ["f:1", "Pod: metadata", "got a number"], id="a field"),
        pytest.param(f"{HEAD}metadata: {{}}\n", Pod, ["f:1", "Pod: ", "`spec`"], id="a field that is lacking"),
        pytest.param(
            f"{HEAD}metadata: {{}}\nspec:\n  volumes:\n  - name: a\n  - name: 1\n",
            Pod,
            ["f:1", "spec.volumes[1].name", "expected a string: put the value in quotes"],
            id="in a list",
        ),
        pytest.param(
            f"{HEAD}metadata:\n  labels:\n    a: b\n    c: 1\nspec: {{}}\n",
            Pod,
            ["f:", "metadata.labels[...]", "got a number"],
            id="in a mapping, whose key is not told",
        ),
        pytest.param(
            "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {}\n- metadata: {}\n  status: []\n",
            Node,
            ["f:5", "Node: status", "got a list, expected a mapping"],
            id="in an item of a List",
        ),
        pytest.param(
            f"{HEAD}metadata: {{}}\nspec: {{<<: {{nodeName: 1}}}}\n", Pod, ["f:1", "spec.nodeName"], id="by a merge"
        ),
    ],
)
def test_a_field_of_a_wrong_type_is_named_with_its_objects_line(text: str, type_: type[Any], words: list[str]) -> None:
    """The message has the type that was got, and the expected one."""
    document = list(read_documents(text, "f"))[-1]
    with pytest.raises(BadDocument) as caught:
        document.read(type_)
    assert all(word in str(caught.value) for word in words), caught.value
    assert "$" not in str(caught.value)


def test_a_mapping_that_is_merged_twice_is_no_duplicate() -> None:
    """A mapping can override what it merges."""
    text = f"{HEAD}x: &x {{k: 1}}\ny: {{z: &y {{<<: *x, k: 2}}}}\nw: {{<<: *y}}\n"
    assert one(text).value["w"] == {"k": 2}


JSON: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "indented": (json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}, indent=4), OBJECTS),
    "a line each, as bundle writes it": (LIST % ",\n".join(map(json.dumps, OBJECTS)), OBJECTS),
    "blanks around it": (f"\n \n{LIST % json.dumps(ANY)}\n\n", [ANY]),
    "a List in a List": (LIST % (LIST % json.dumps(OBJECTS[0])), OBJECTS[:1]),
    "a typed List": (
        '{"apiVersion": "longhorn.io/v1beta2", "kind": "NodeList", "items": [{"metadata": {}}]}',
        [{"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {}}],
    ),
    "one object": (json.dumps(ANY, indent=2), [ANY]),
    "beyond ASCII as it is": (json.dumps(ANY, ensure_ascii=False), [ANY]),
    "slashes as escapes": (json.dumps(ANY | {"y": "a/b"}).replace("/", "\\/"), [ANY | {"y": "a/b"}]),
    "the same object twice": (LIST % f"{json.dumps(ANY)}, {json.dumps(ANY)}", [ANY, ANY]),
}


@pytest.mark.parametrize(("text", "objects"), JSON.values(), ids=JSON)
def test_json_is_read_without_yaml(
    text: str, objects: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """35,000 objects took 60 s with YAML; also in a file."""
    monkeypatch.setattr(documents, "Loader", None)
    (tmp_path / "f.json").write_text(text, encoding="utf-8")
    assert [each.value for each in read_file(tmp_path / "f.json")] == objects


@pytest.mark.parametrize("document", [Document("f", WRONG), *read_documents(LIST % json.dumps(WRONG), "f")])
def test_a_wrong_field_of_json_has_the_name_of_its_object(document: Document) -> None:
    """A line would be the only one of the file; an object of an API server has none."""
    with pytest.raises(BadDocument, match=r"^f: Pod share-manager-root: spec\.nodeName: "):
        document.read(Pod)
