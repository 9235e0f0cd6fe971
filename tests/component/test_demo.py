"""The demo: all its answers are as expected, and it reports an answer that is not."""

from __future__ import annotations

import base64
import io
import json
import re
from typing import Any, Final

import pytest
from support.objects import builders

from webhook import cli, demo


@pytest.fixture
def exchange() -> demo.Exchange:
    """An exchange whose answer is as expected."""
    review = builders.review(builders.virt_launcher_pod(), uid="u-1")
    value = {"nodeAffinity": {"x": "node-a"}}
    patch = json.dumps([{"op": "add", "path": "/spec/affinity", "value": value}]).encode()
    audit = {"decision": "required", "reason": "ShareManagerPod", "node": "node-a", "because": "it is so"}
    response = {"uid": "u-1", "allowed": True, "patch": base64.b64encode(patch).decode(), "auditAnnotations": audit}
    expected = {"decision": "required", "reason": "ShareManagerPod", "nodes": ["node-a"]}
    return demo.Exchange(name="x", review=review, status=200, response=response, expected=expected)


def changed(exchange: demo.Exchange, **fields: Any) -> demo.Exchange:
    """The exchange with other fields; those of `response` are merged into it."""
    whole = {name: getattr(exchange, name) for name in exchange.__struct_fields__}
    response = {**exchange.response, **fields.pop("response", {})}
    return demo.Exchange(**(whole | fields | {"response": response}))


def encoded(*operations: dict[str, Any]) -> str:
    """Operations in the form of a response."""
    return base64.b64encode(json.dumps(operations).encode()).decode()


def test_every_answer_over_tls_is_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each review, one affinity before and after, and a count; nothing on standard error."""
    assert cli.main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0].split() == ["POD", "OF", "DECISION", "NODE", "WHY"]
    assert re.search(r"^VM db01 +required +node-a +claim db01-rootdisk", out, re.MULTILINE)
    assert "+        - key: metadata.name" in out
    counted = re.search(r"(\d+) of (\d+) answers", out)
    assert counted is not None
    assert counted.group(1) == counted.group(2)
    assert "WRONG" not in out


def test_a_cold_start_is_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """The VM starts on any node; in the next line the webhook steers its share-manager pod to the VM's node."""
    assert cli.main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    vm = next(index for index, line in enumerate(lines) if line.startswith("VM cold01 "))
    assert lines[vm].split()[:4] == ["VM", "cold01", "unchanged", "-"]
    assert lines[vm + 1].split()[:4] == ["share-manager", "pvc-cold01", "preferred", "node-a"]
    assert "VM cold01 uses it, and its pod virt-launcher-cold01-x7k2p is on node node-a" in lines[vm + 1]


def test_a_wrong_answer_is_shown_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, with the answer and the expected one."""
    right = demo._expected
    monkeypatch.setattr(demo, "_expected", lambda file: right(file) | {"5-cold-start": {"decision": "required"}})
    out = io.StringIO()
    assert demo.run(out) == 1
    assert "WRONG 5-cold-start: got" in out.getvalue()
    assert "expected {'decision': 'required'}" in out.getvalue()


def test_an_exchange_without_flaw_has_none(exchange: demo.Exchange) -> None:
    """The rows of the next test each differ from it in one field."""
    assert exchange.flaw() is None


ELSEWHERE: Final = encoded({"op": "add", "path": "/spec/affinity", "value": {}})
BROKEN: Final = encoded({"op": "remove", "path": "/spec/nothing"})
FLAWS: Final = {
    "refused": ({"response": {"allowed": False}}, "allowed: False"),
    "no answer": ({"status": 500}, "HTTP 500"),
    "another uid": ({"response": {"uid": "u-2"}}, "another uid"),
    "another node": ({"response": {"auditAnnotations": {"node": "node-b"}}}, "expected"),
    "a patch that does not apply": ({"response": {"patch": BROKEN}}, "does not apply"),
    "a patch that does not pin": ({"response": {"patch": ELSEWHERE}}, "does not name node-a"),
}


@pytest.mark.parametrize(("fields", "flaw"), FLAWS.values(), ids=FLAWS.keys())
def test_a_flaw_is_found(exchange: demo.Exchange, fields: dict[str, Any], flaw: str) -> None:
    """Each of them alone makes the demo fail."""
    assert flaw in (changed(exchange, **fields).flaw() or "")


def test_examples_that_can_not_be_read_are_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence that names the place, and exit code 2."""
    monkeypatch.setattr(demo, "_examples", lambda: tmp_path)
    assert cli.main(["demo"]) == 2
    assert str(tmp_path) in capsys.readouterr().err
