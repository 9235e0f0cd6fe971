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

pytestmark = pytest.mark.slow

each_program = pytest.mark.parametrize("program", [WEBHOOK, CERTS], ids=lambda program: program.executable)
COMPLETED: Final = {
    "": "{commands}",
    "{begun}": "{prints}",
    "completion ": "bash fish zsh",
    "help {begun}": "{prints}",
    "{formats} --out": "--output",
    "{formats} --output ": "{values}",
    "{formats} -o js": "json",
    "{formats} --output = js": "json",  # bash splits words at an equals sign
    "{formats} -n x --output = json --kube": "--kubeconfig",
    "{formats} --output xml --contex": "--context",
    "{formats} --output json --outp": "",  # it stands there already
    "{formats} --unheard-of --contex": "--context",
}


def words(program: Program) -> dict[str, str]:
    """What stands for the names in the table."""
    ours = "serve explain status candidates bundle reunite demo"
    commands = {"webhook": ours, "certs": "keep issue"}[program.module]
    common = program._asdict() | {"prints": program.prints.split()[0]}
    return common | {"commands": f"{commands} version help completion", "values": "text yaml json"}


@each_program
def test_bash_completes_commands_options_and_values(program: Program, tmp_path: Path) -> None:
    """In the order of the help; an option that stands there already is not offered again."""
    executable = tmp_path / program.executable
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} -m {program.module} "$@"\n')
    executable.chmod(0o755)
    function = f"_{program.executable.replace('-', '_')}_completion"
    script = [f"source <({program.executable} completion bash)", f"complete -p {program.executable}"]
    lines = [line for line in COMPLETED if program.formats or "{formats}" not in line]
    for line in lines:
        typed = [program.executable, *line.format(**words(program)).split(" ")]
        quoted = " ".join(f"'{word}'" for word in typed)
        script += [f"COMP_WORDS=({quoted}) COMP_CWORD={len(typed) - 1} COMPREPLY=()"]
        script += [f"{function} {program.executable}", 'echo "${COMPREPLY[*]}"']
    told = ended(["bash", "-c", "\n".join(script)], PATH=f"{tmp_path}:{os.environ['PATH']}")
    registered, *found = told.stdout.splitlines()
    assert told.stderr == ""
    assert registered == f"complete -o nosort -F {function} {program.executable}"
    expected = {line: COMPLETED[line].format(**words(program)) for line in lines}
    assert dict(zip(lines, found, strict=True)) == expected


ASKED: Final = {
    "zsh": ("2", "plain\n--output=json\n_\n"),
    "fish": ("--output=js", "plain,--output=json\n"),
}


@pytest.mark.parametrize("shell", ASKED)
def test_zsh_and_fish_replace_a_whole_word(shell: str) -> None:
    """Asked as their scripts do it; a value behind an equals sign keeps its flag."""
    script = WEBHOOK.run("completion", shell)
    variable = f"_{WEBHOOK.executable.replace('-', '_').upper()}_COMPLETE"
    assert (script.returncode, f"{variable}={shell}_complete" in script.stdout) == (0, True)
    place, expected = ASKED[shell]
    asking = {
        variable: f"{shell}_complete",
        "COMP_WORDS": f"{WEBHOOK.executable} {WEBHOOK.formats} --output=js",
        "COMP_CWORD": place,
    }
    told = WEBHOOK.run(**asking)
    assert (told.returncode, told.stdout, told.stderr) == (0, expected, "")


def test_what_shells_complete_is_what_the_package_installs() -> None:
    """A shell never asks for the completions of a command that does not exist."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    own = {program.executable: f"{program.module}.__main__:main" for program in (WEBHOOK, CERTS)}
    assert scripts == {
        **own,
        "kubectl-coschedule": "webhook.__main__:main",
        "kubectl_complete-coschedule": "webhook.cli:complete",
    }
