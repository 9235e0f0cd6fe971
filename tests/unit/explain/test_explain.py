"""The command explain: which objects of a file it explains, how it prints them, and its exit code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support.drivers.explaining import a_vm, as_yaml, run, settings, the_cluster

from webhook.explain.run import explain_in
from webhook.objects.documents import BadDocument


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
