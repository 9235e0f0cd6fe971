"""Shell completion of both programs: the scripts that they print, and kubectl's plugin."""

from __future__ import annotations

import tomllib

import pytest
from support.drivers.command_lines import CERTS, WEBHOOK, Program
from support.drivers.serving import ROOT

from webhook import cli

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", [WEBHOOK, CERTS], ids=lambda program: program.executable)
def test_a_shell_gets_the_script_of_click(program: Program) -> None:
    """As click's users get it."""
    name = program.executable.replace("-", "_")
    told = program.run(**{f"_{name.upper()}_COMPLETE": "bash_source"})
    assert (told.returncode, told.stderr) == (0, "")
    assert f"complete -o nosort -F _{name}_completion {program.executable}" in told.stdout


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
