"""The demo: all its answers are as expected, and it reports an answer that is not."""

from __future__ import annotations

import base64
import io
import json
import re
import tempfile
from typing import Any, Final

import pytest
from msgspec.structs import replace
from support.objects import builders

from webhook import cli
from webhook.demo import exchange as exchanges
from webhook.demo import run
from webhook.demo.exchange import Exchange
from webhook.terminal import GREEN, RESET

NEXT: Final = {
    "status": ("status -A --manifests", 1, ["apart", "together", "stuck", "free"]),
    "list": ("reunite -A -o yaml --now", 0, ["VirtualMachineInstanceMigration"]),
    "explain": ("explain", 0, ["would ask for node-a"]),
}


@pytest.fixture
def exchange() -> Exchange:
    """An exchange whose answer is as expected."""
    review = builders.review(builders.virt_launcher_pod(), uid="u-1")
    value = {"nodeAffinity": {"x": "node-a"}}
    patch = json.dumps([{"op": "add", "path": "/spec/affinity", "value": value}]).encode()
    audit = {"decision": "required", "reason": "ShareManagerPod", "node": "node-a", "because": "it is so"}
    response = {"uid": "u-1", "allowed": True, "patch": base64.b64encode(patch).decode(), "auditAnnotations": audit}
    expected = {"decision": "required", "reason": "ShareManagerPod", "nodes": ["node-a"]}
    return Exchange("x", "a case", review, 200, response, expected)


def changed(exchange: Exchange, **fields: Any) -> Exchange:
    """The exchange with other fields; those of `response` are merged into it."""
    return replace(exchange, **fields | {"response": {**exchange.response, **fields.get("response", {})}})


def encoded(*operations: dict[str, Any]) -> str:
    """Operations in the form of a response."""
    return base64.b64encode(json.dumps(operations).encode()).decode()


@pytest.fixture(scope="module")
def story() -> str:
    """What the demo prints where no terminal is."""
    out = io.StringIO()
    assert run.run(out, color=False) == 0
    return out.getvalue()


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory that Python knows for temporary files can be written."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/dev/null/no"])


@pytest.mark.usefixtures("read_only")
def test_the_demo_runs_on_a_read_only_root(capsys: pytest.CaptureFixture[str]) -> None:
    """In the webhook's own pod, where only shared memory can be written. Without a terminal no line has a color."""
    assert cli.main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert (err, "10 of 10 answers over TLS are as expected." in out, "WRONG" in out) == ("", True, False)
    assert [line for line in out.splitlines() if len(line) > 80] == []
    assert "\x1b" not in out


@pytest.mark.usefixtures("read_only")
def test_without_any_place_for_files_the_demo_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence with what to do."""
    monkeypatch.setattr(exchanges, "SHARED_MEMORY", "/dev/null/no")
    assert cli.main(["demo"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: No usable temporary directory found in ['/dev/null/no']; expected")


def test_the_story_goes_from_before_to_what_is_next(story: str) -> None:
    """The parts in their order: the VM apart, the VM together, the scenarios, the change, and commands."""
    heads = ["BEFORE", "AFTER", "SCENARIOS", "WHAT THE WEBHOOK WROTE", "WHAT TO DO NEXT"]
    assert re.findall(rf"^({'|'.join(heads)})", story, re.MULTILINE) == heads
    assert "  node-b: VM db01  <==== network: every block ====>  node-a: its share-manager" in story
    assert "  node-a: VM db01  <= no network =>  node-a: its share-manager" in story
    assert "+        - key: metadata.name" in story


def test_each_scenario_has_a_name_of_its_own_and_its_answer(story: str) -> None:
    """A line with number, name, decision and nodes; then the pod, and why."""
    found = re.findall(r"^ ?(\d+)  (\S.*?)  +(required|preferred|unchanged) ?(.*)\n    (.*?): ", story, re.MULTILINE)
    assert [int(number) for number, *_ in found] == list(range(1, 11))
    assert len({scenario for _, scenario, *_ in found}) == 10
    assert found[0][2:] == ("required", "node-a", "VM db01")
    assert found[4][2:] == ("unchanged", "", "VM cold01")
    assert found[5][2:] == ("preferred", "node-a", "share-manager pvc-cold01")
    assert "VM cold01 uses it,\n    and its pod virt-launcher-cold01-x7k2p is on node node-a" in story


def test_a_terminal_gets_colors_around_the_same_words(
    story: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless NO_COLOR is set."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    cli.main(["demo"])
    colored = capsys.readouterr().out
    assert f"{GREEN}required{RESET} node-a" in colored
    assert re.sub(r"\x1b\[\d*m", "", colored) == story


@pytest.mark.parametrize(("command", "code", "words"), NEXT.values(), ids=NEXT.keys())
def test_what_to_do_next_works_as_shown(
    story: str, command: str, code: int, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands of the last part, with the value of $cluster, from the checkout."""
    assigned = re.search(r"cluster=(\S+)", story)
    assert assigned is not None
    shown = next(each for each in _commands(story) if each.startswith(f"kubevirt-coschedule {command} "))
    assert cli.main(shown.replace("$cluster", assigned[1]).split()[1:]) == code
    out = capsys.readouterr().out
    assert [word for word in words if word not in out] == []


def test_the_page_s_command_is_one_that_serve_takes(story: str) -> None:
    """Its options are those of `serve`."""
    shown = next(each for each in _commands(story) if each.startswith("kubevirt-coschedule serve "))
    known = {option for parameter in cli.COMMANDS.commands["serve"].params for option in parameter.opts}
    assert {word for word in shown.split() if word.startswith("--")} <= known


def _commands(story: str) -> list[str]:
    """The commands of the last part, each on one line."""
    last = story.partition("WHAT TO DO NEXT")[2]
    return [line.strip() for line in re.sub(r"\\\n\s*", "", last).splitlines()]


def test_a_wrong_answer_is_shown_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, with the answer and the expected one."""
    right = exchanges.scenarios_of
    wrong = {"5-cold-start": {"scenario": "a case", "answer": {"decision": "required", "nodes": []}}}
    monkeypatch.setattr(exchanges, "scenarios_of", lambda file: right(file) | wrong)
    out = io.StringIO()
    assert run.run(out, color=False) == 1
    assert "WRONG 5-cold-start: got" in out.getvalue()
    assert "expected {'decision': 'required', 'nodes': []}" in out.getvalue()
    assert "9 of 10 answers" in out.getvalue()


ELSEWHERE: Final = encoded({"op": "add", "path": "/spec/affinity", "value": {}})
BROKEN: Final = encoded({"op": "remove", "path": "/spec/nothing"})
FLAWS: Final = {
    "none": ({}, ""),
    "refused": ({"response": {"allowed": False}}, "allowed: False"),
    "no answer": ({"status": 500}, "HTTP 500"),
    "another uid": ({"response": {"uid": "u-2"}}, "another uid"),
    "another node": ({"response": {"auditAnnotations": {"node": "node-b"}}}, "expected"),
    "a patch that does not apply": ({"response": {"patch": BROKEN}}, "does not apply"),
    "a patch that does not pin": ({"response": {"patch": ELSEWHERE}}, "does not name node-a"),
}


@pytest.mark.parametrize(("fields", "flaw"), FLAWS.values(), ids=FLAWS.keys())
def test_a_flaw_is_found(exchange: Exchange, fields: dict[str, Any], flaw: str) -> None:
    """Each of them alone makes the demo fail."""
    found = changed(exchange, **fields).flaw() or ""
    assert (flaw in found, bool(found)) == (True, bool(flaw))


def test_examples_that_can_not_be_read_are_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence that names the place, and exit code 2."""
    monkeypatch.setattr(run, "examples_directory", lambda: tmp_path)
    assert cli.main(["demo"]) == 2
    assert str(tmp_path) in capsys.readouterr().err
