"""A List with a line for each object, as bundle writes it: read without YAML, and to the same objects."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from support.objects import builders

from webhook.core.api.pod import Pod
from webhook.files.documents import LIST_START, BadDocument, read_documents

OBJECTS: Final = [builders.node("node-a"), builders.share_manager_pod("root"), builders.persistent_volume_claim("root")]


def lined(*objects: dict[str, Any], end: str = "]}") -> str:
    """The text of such a List."""
    return f"{LIST_START}\n" + ",\n".join(map(json.dumps, objects)) + f"\n{end}\n"


def test_the_objects_are_those_that_yaml_has() -> None:
    """Each has the line on which it is."""
    found = list(read_documents(lined(*OBJECTS), "f"))
    assert [each.value for each in found] == OBJECTS
    assert [each.place for each in found] == ["f:2", "f:3", "f:4"]
    by_yaml = list(read_documents(" " + lined(*OBJECTS), "f"))
    assert [(each.value, each.place) for each in by_yaml] == [(each.value, each.place) for each in found]


def test_a_wrong_field_has_its_line() -> None:
    """As in other files."""
    pod = builders.share_manager_pod("root")
    pod["spec"]["nodeName"] = 12
    *_, document = read_documents(lined(OBJECTS[0], pod), "f")
    with pytest.raises(BadDocument, match=r"^f:3: Pod: spec\.nodeName: "):
        document.read(Pod)


CHANGED: Final = {
    "an object on two lines": lined(OBJECTS[0]).replace('"kind": "Node"', '"kind":\n"Node"'),
    "another end": lined(OBJECTS[0], end="] }"),
    "no object": lined({}).replace("{}", ""),
}


@pytest.mark.parametrize("text", CHANGED.values(), ids=CHANGED)
def test_a_list_in_another_form_is_read_as_yaml(text: str) -> None:
    """To the same objects."""
    expected = [OBJECTS[0]] if "Node" in text else []
    assert [each.value for each in read_documents(text, "f")] == expected


def test_a_line_whose_kind_is_not_a_text_is_an_error() -> None:
    """With what was expected."""
    with pytest.raises(BadDocument, match="f:2: not a Kubernetes object: kind: got a number, expected a string"):
        list(read_documents(lined({"apiVersion": "v1", "kind": 3}), "f"))
