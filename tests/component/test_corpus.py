"""The reader of the corpus: it reads each row as described, or fails with the place of the mistake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.objects import corpus
from support.objects.builders import review

GOOD_ROW = """
  - name: A good row
    pod: {optIn: "false"}
    cluster: {nodes: [node-a]}
    expect: {decision: unchanged, reason: OptedOut, affinity: unchanged, binds: [node-a]}
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param("pod:", "pods:", "'A good row': Object contains unknown field `pods`", id="unknown key of a row"),
        pytest.param('"false"', "false", "pod.optIn: got False, expected a quoted string", id="unquoted boolean"),
        pytest.param(
            "pod:", "name: Another\n    pod:", "key name: no string, or here twice", id="key that stands twice"
        ),
        pytest.param("unchanged, r", "required, r", "expect.nodes: expected names", id="required without nodes"),
        pytest.param(", binds: [node-a]", "", "one of binds, pending and shortlist", id="neither binds nor pending"),
        pytest.param("pod:", "replay: false\n    pod:", "replay: false and why", id="no reason against a replay"),
        pytest.param('{optIn: "false"}', "{fixture: none}", "no file pods/none.json", id="unknown fixture"),
        pytest.param(
            "pod:", "entry: share-manager\n    pod:", "pod of a share-manager: unknown key optIn", id="a VM's key"
        ),
        pytest.param(
            "[node-a]}\n    e",
            "[], vms: {a: {optIn: true}}}\n    e",
            "cluster.vms.a.optIn: got True",
            id="unquoted in a VM",
        ),
        pytest.param("binds:", "shortlist: 3, binds:", "one of binds, pending and shortlist", id="binds and shortlist"),
    ],
)
def test_a_malformed_row_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    """A row with a mistake is an error that names the file, the row if it has a name, and the mistake."""
    assert old in GOOD_ROW
    (tmp_path / "bad.yaml").write_text("rows:" + GOOD_ROW.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(corpus.BadCorpus, match=f"^bad.yaml: .*{re.escape(told)}"):
        corpus.load(tmp_path)


def test_a_name_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    """Each row needs a name of its own among all files."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("rows:" + GOOD_ROW, encoding="utf-8")
    with pytest.raises(corpus.BadCorpus, match=r"b\.yaml: row 'A good row': the name stands already in a\.yaml"):
        corpus.load(tmp_path)


def test_a_good_row_is_read(tmp_path: Path) -> None:
    """The row of the tests above has no mistake by itself."""
    (tmp_path / "good.yaml").write_text("rows:" + GOOD_ROW, encoding="utf-8")
    assert [case.name for case in corpus.load(tmp_path)] == ["A good row"]


def holds_null(value: Any) -> bool:
    """Whether there is a null at any depth."""
    if isinstance(value, dict | list):
        return any(map(holds_null, value.values() if isinstance(value, dict) else value))
    return value is None


def test_a_pod_that_holds_a_null_is_not_replayed() -> None:
    """The API server drops nulls before it calls a webhook, so such a row would be replayed with another pod."""
    nulls = [case for case in corpus.load() if holds_null(case.pod)]
    assert nulls
    assert [case.name for case in nulls if case.replay] == []


def test_a_review_is_what_the_api_server_sends() -> None:
    """The builder's envelope names the version, and DELETE carries the pod as oldObject."""
    deleted = review({"kind": "Pod"}, operation="DELETE")
    assert deleted["apiVersion"] == "admission.k8s.io/v1"
    assert (deleted["request"]["object"], deleted["request"]["oldObject"]) == (None, {"kind": "Pod"})
