"""What users read: tests/golden/*.txt are transcripts of commands over a cluster of YAML, and each is played again.

`UPDATE_GOLDEN=1 pytest tests/component/test_golden.py` writes them again: the difference in git is what users will see.
A line is one of these. Indented lines are output: `!` marks standard error, and `[1]` an exit code other than 0.

    cluster FILE              an API server with the objects of this file of tests/golden
    ## TITLE                  the cluster is as at first again
    patch PATH YAML           merges into the object at this path, or creates it; null removes a field
    delete PATH               deletes the object
    given YAML                adds a document to the file GIVEN, for -f
    refuse PATH CODE MESSAGE  the API server answers so, at this path and below
    $ COMMAND                 runs the program; FILES is a file with the same objects, for --manifests
    $ COMMAND | grep PATTERN  shows the lines that match this regular expression
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.drivers.serving import ROOT, write_cluster
from support.fakes.static_api import StaticApi, path_of
from support.objects.owners import owner_of

from webhook import cli

GOLDEN: Final = ROOT / "tests" / "golden"
NOW: Final = datetime(2026, 3, 4, 12, tzinfo=UTC)
"""The time of each transcript. Times are moved to the real one before a command runs, and back in its output."""
_SLACK: Final = timedelta(minutes=2)
_TIME: Final = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_GROUPS: Final = ("kubevirt.io", "longhorn.io", "admissionregistration.k8s.io")
_EXIT_CODE: Final = re.compile(r"\[\d\]")
_INDENT: Final = "    "


@pytest.mark.parametrize("name", sorted(file.stem for file in GOLDEN.glob("*.txt")))
def test_a_transcript_is_what_users_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that has changed shows as a difference."""
    file = GOLDEN / f"{name}.txt"
    before = file.read_text(encoding="utf-8")
    after = "\n".join(line for part in _parts(before) for line in Player(tmp_path, capsys).play(part)).rstrip() + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(after, encoding="utf-8")
        return
    changed = "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), str(file), "now", lineterm=""))
    assert not changed, f"{changed}\n\nas it should be? UPDATE_GOLDEN=1 pytest tests/component/test_golden.py"


def _parts(text: str) -> Iterator[list[str]]:
    """The lines of each heading, without output. The lines before the first heading begin each part."""
    lines = [line for line in text.splitlines() if line and not line.startswith(_INDENT)]
    starts = [number for number, line in enumerate(lines) if line.startswith("## ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield [*(lines[: starts[0]] if start == starts[0] else _silent(lines[: starts[0]])), *lines[start:end]]


def _silent(lines: list[str]) -> list[str]:
    return [f"\0{line}" for line in lines]


class Player:
    """Plays one part of a transcript, with an API server of its own."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._directory, self._capsys, self._files = directory, capsys, directory / "cluster.json"
        self._given = directory / "given.yaml"
        self._moved = datetime.now(UTC).replace(microsecond=0) - NOW

    def play(self, lines: list[str]) -> Iterator[str]:
        """The lines again, each command with its output."""
        self._given.unlink(missing_ok=True)
        with StaticApi([], installed=_GROUPS) as api:
            self._kubeconfig = api.kubeconfig(self._directory / "kubeconfig", namespace="vms")
            for line in lines:
                word, _, rest = line.lstrip("\0").partition(" ")
                if word == "##":
                    yield ""
                if not line.startswith("\0"):
                    yield line
                if word == "$":
                    command, _, pattern = rest.partition(" | grep ")
                    yield from self._output(self._run(command, api), api, pattern)
                elif word not in ("#", "##"):
                    self._change(api, word, rest)

    def _change(self, api: StaticApi, word: str, rest: str) -> None:
        path, _, value = rest.partition(" ")
        match word:
            case "cluster":
                objects = yaml.load_all(self._now((GOLDEN / path).read_text(encoding="utf-8")), yaml.CSafeLoader)
                with StaticApi(objects) as described:
                    api.objects |= described.objects
                for known in list(api.objects):
                    _own(api, known)
            case "patch":
                patch = yaml.load(self._now(value), yaml.CSafeLoader)
                api.objects[path] = _merged(api.objects.get(path, {}), patch)
                _own(api, path)
            case "delete":
                del api.objects[path]
                api.objects.pop(path.replace("/virtualmachines/", "/virtualmachineinstances/"), None)
            case "given":
                with self._given.open("a", encoding="utf-8") as file:
                    file.write(f"{self._now(rest)}\n---\n")
            case "refuse":
                code, _, message = value.partition(" ")
                api.refuse(path, int(code), message)
            case _:
                raise AssertionError(f"{word}: no such line of a transcript")

    def _run(self, command: str, api: StaticApi) -> list[str]:
        if "FILES" in command:
            write_cluster(self._files, list(api.objects.values()))
        command = command.replace("FILES", str(self._files)).replace("GIVEN", str(self._given))
        cluster = [] if "--manifests" in command else ["--kubeconfig", str(self._kubeconfig)]
        code = cli.main([*shlex.split(command), *cluster])
        out, err = self._capsys.readouterr()
        return [*out.splitlines(), *(f"! {line}" for line in err.splitlines()), *([f"[{code}]"] if code else [])]

    def _output(self, lines: list[str], api: StaticApi, pattern: str = "") -> Iterator[str]:
        """The lines that match, without what another run would have otherwise. An exit code is always shown."""
        shown = {
            f" --kubeconfig {self._kubeconfig}": "",
            api.url.removeprefix("http://"): "api.example.com",
            str(self._files): "FILES",
            str(self._given): "GIVEN",
        }
        for line in lines:
            text = _TIME.sub(lambda found: self._then(found.group()), line)
            for known, name in shown.items():
                text = text.replace(known, name)
            if re.search(pattern, text) or _EXIT_CODE.fullmatch(text):
                yield f"{_INDENT}{text}".rstrip()

    def _now(self, text: str) -> str:
        return _TIME.sub(lambda found: _shown(datetime.fromisoformat(found.group()) + self._moved), text)

    def _then(self, time: str) -> str:
        at = datetime.fromisoformat(time) - self._moved
        return _shown(NOW if abs(at - NOW) < _SLACK else at)


def _own(api: StaticApi, path: str) -> None:
    """Give the cluster the VirtualMachineInstance, or ShareManager, that the pod at this path names as its owner."""
    pod = api.objects[path]
    if pod["kind"] != "Pod" or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return
    for owner in owner_of(pod, pod["metadata"]["namespace"]):
        at = path_of(owner)
        if owner["kind"] == "VirtualMachineInstance":
            named = {"kind": "VirtualMachine", "name": owner["metadata"]["name"], "uid": "vm", "controller": True}
            owner["metadata"]["ownerReferences"] = [{"apiVersion": "kubevirt.io/v1", **named}]
        known = api.objects.setdefault(at, owner)
        known["metadata"].setdefault("uid", owner["metadata"]["uid"])


def _shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    old = value if isinstance(value, dict) else {}
    merged = {**old, **{name: _merged(old.get(name), each) for name, each in patch.items()}}
    return {name: each for name, each in merged.items() if each is not None}
