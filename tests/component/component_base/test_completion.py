"""Shell completion of both programs: by the scripts that they print, as the shells ask for it."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_line_programs import CERTS, WEBHOOK, Program, ended
from support.drivers.serving import ROOT

from webhook import cli

pytestmark = pytest.mark.slow

each_program = pytest.mark.parametrize("program", [WEBHOOK, CERTS], ids=lambda program: program.executable)
COMPLETED: Final = {
    "": "{commands}",
    "{begun}": "{prints}",
    "{formats} --out": "--output",
    "{formats} --output ": "{values}",
    "{formats} -o js": "json",
    "{formats} -n x --output json --kube": "--kubeconfig",
}


def words(program: Program) -> dict[str, str]:
    """What stands for the names in the table."""
    commands = {
        "webhook": "bundle candidates demo explain reunite serve status",
        "certs": "issue keep",
    }[program.module]
    common = program._asdict() | {"prints": program.prints.split()[0]}
    return common | {"commands": commands, "values": "text json"}


@each_program
def test_bash_completes_commands_options_and_values(program: Program, tmp_path: Path) -> None:
    """By the script that the program prints, as click's users get it."""
    executable = tmp_path / program.executable
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} -m {program.module} "$@"\n')
    executable.chmod(0o755)
    name = program.executable.replace("-", "_")
    script = [
        f"source <(_{name.upper()}_COMPLETE=bash_source {program.executable})",
        f"complete -p {program.executable}",
    ]
    lines = [line for line in COMPLETED if program.formats or "{formats}" not in line]
    for line in lines:
        typed = [program.executable, *line.format(**words(program)).split(" ")]
        quoted = " ".join(f"'{word}'" for word in typed)
        script += [f"COMP_WORDS=({quoted}) COMP_CWORD={len(typed) - 1} COMPREPLY=()"]
        script += [f"_{name}_completion {program.executable}", 'echo "${COMPREPLY[*]}"']
    told = ended(["bash", "-c", "\n".join(script)], PATH=f"{tmp_path}:{os.environ['PATH']}")
    registered, *found = told.stdout.splitlines()
    assert told.stderr == ""
    assert registered == f"complete -o nosort -F _{name}_completion {program.executable}"
    expected = {line: COMPLETED[line].format(**words(program)) for line in lines}
    assert dict(zip(lines, found, strict=True)) == expected


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["sta"], ["status\tShow which VMs are with their share-manager.", ":4"]),
        (["explain", "-o", ""], ["text", "json", ":4"]),
        (["status", "--manifests", ""], [":0"]),
        ([], ["bundle", "candidates", "demo", "explain", "reunite", "serve", "status", ":4"]),
    ],
    ids=["command", "value", "file", "nothing"],
)
def test_kubectl_gets_the_words_of_the_plugin(
    words: list[str], lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As kubectl asks `kubectl_complete-coschedule`. The last line lets the shell complete names of files, or not."""
    monkeypatch.setattr("sys.argv", ["kubectl_complete-coschedule", *words])
    assert cli.complete() == 0
    found = capsys.readouterr().out.splitlines()
    assert (found if words else [each.partition("\t")[0] for each in found]) == lines


def test_what_shells_complete_is_what_the_package_installs() -> None:
    """A shell never asks for the completions of a command that does not exist."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    own = {program.executable: f"{program.module}.__main__:main" for program in (WEBHOOK, CERTS)}
    assert scripts == {
        **own,
        "kubectl-coschedule": "webhook.__main__:main",
        "kubectl_complete-coschedule": "webhook.cli:complete",
    }
