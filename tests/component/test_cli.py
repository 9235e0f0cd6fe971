"""The command line in-process: help, what is wrong with what was typed, environment variables, exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.drivers.command_lines import values
from support.drivers.serving import cluster, issue, write_cluster

from webhook import __version__, cli
from webhook.app import run
from webhook.cluster_options import ENVIRONMENT_PREFIX
from webhook.component_base.command_line import Command
from webhook.component_base.errors import BadSettings
from webhook.component_base.options import Option

_EMPTY: Final = '""'
_NAMES: Final = [
    *("serve", "explain", "status", "candidates", "bundle"),
    *("reunite", "demo", "version", "help", "completion"),
]


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]], ids=" ".join)
def test_help_lists_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the program says what there is."""
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.split("Commands:\n")[1].split("\n\n")[0].splitlines()] == _NAMES
    assert err == ""


def test_help_of_a_command_that_does_not_exist_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that asks for it must not go on as if there were one."""
    assert cli.main(["help", "statsu"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: unknown command 'statsu': expected one of serve, explain, ")
    assert "did you mean status?" in err


@pytest.mark.parametrize("words", ["{} --help", "{} -h", "help {}", "{} --manifests x --help"], ids=str)
@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_help_of_a_command_says_all_of_it(command: Command, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every flag with its default, the environment once, examples, usage, exit codes; in lines that fit a terminal."""
    assert cli.main(words.format(command.name).split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Usage: kubevirt-coschedule {command.name} [OPTIONS]")
    assert "Examples:\n  " in out
    assert "Exit codes:\n  " in out
    for option in (each for each in command.params if isinstance(each, Option)):
        assert re.search(rf"^  (-\w, )?{option.opts[0]}( \S+)?$", out, re.MULTILINE)
        defaults = [f"[default: {option.default or _EMPTY}]"] if isinstance(option.default, str) else []
        told = ["[required]"] if option.required else defaults
        assert all(each in " ".join(out.split()) for each in told)
    assert (f": {ENVIRONMENT_PREFIX}" in out) == ("Environment:\n  " in out) == (len(command.params) > 0)
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("columns", [52, 80, 200])
@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_help_breaks_no_name_at_a_hyphen(
    command: Command, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user copies names from the help. Its text is as wide as the terminal, and no wider than people read."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.main([command.name, "--help"]) == 0
    text = capsys.readouterr().out
    described, _, options = text.partition("Examples:")[0], *text.partition("Options:")[1:]
    lines = (described + options).splitlines()
    assert [line for line in lines if re.search(r"\w-$", line)] == []
    assert max(len(line) for line in lines if len(line.split()) > 1) <= min(columns, 80)


@pytest.mark.parametrize("words", [["version"], ["--version"], ["-v"]], ids=" ".join)
def test_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The program's name and version on one line."""
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"kubevirt-coschedule {__version__}\n"


SERVE: Final = "serve --manifests m --tls-cert-file c --tls-private-key-file k "
TYPED: Final = {
    "unknown command": (
        "serv",
        [
            (
                "unknown command 'serv': expected one of serve, explain, status, candidates, bundle, reunite, demo, "
                "version, help, completion; did you mean serve?"
            )
        ],
    ),
    "nothing for serve": (
        "serve",
        [
            "--tls-cert-file: got nothing, expected FILE (or set KUBEVIRT_COSCHEDULE_TLS_CERT_FILE)",
            "--tls-private-key-file: got nothing, expected FILE (or set KUBEVIRT_COSCHEDULE_TLS_PRIVATE_KEY_FILE)",
        ],
    ),
    "nothing for explain": (
        "explain",
        ["nothing to explain: expected a VM, TYPE/NAME or --filename FILE"],
    ),
    "several at once": (
        SERVE + "--listen 9443 --health-listen :99999 --drain-seconds -1 --mode hard --longhorn-namespace=",
        [
            "--listen: got '9443', expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to 65535",
            "--health-listen: got ':99999', expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to 65535",
            "--drain-seconds: got '-1', expected a number of seconds, 0 or more, such as 15 or 0.5",
            "--mode: got 'hard', expected required, preferred or off",
            "--longhorn-namespace: got '', expected a name",
        ],
    ),
    "no such log": (
        SERVE + "--log-level loud --events yes",
        [
            "--events: got 'yes', expected on or off",
            "--log-level: got 'loud', expected debug, info, warning or error",
        ],
    ),
    "events on what files describe": (
        SERVE + "--events on",
        ["got --events on and --manifests m: expected a live cluster for the events"],
    ),
    "two clusters for serve": (
        SERVE + "--context c",
        ["got --context c and --manifests m: expected a live cluster or one in files, not both"],
    ),
    "names and a file": (
        "explain vm/a pod/b -f vm.yaml",
        [
            (
                "got vm/a pod/b and --filename vm.yaml: expected names or a file of objects, not both; a file of a "
                "whole cluster is for --manifests"
            ),
        ],
    ),
    "manifests, and a context": (
        "explain vm/a --manifests m --context c --kubeconfig k",
        [
            "got --kubeconfig k and --manifests m: expected a live cluster or one in files, not both",
            "got --context c and --manifests m: expected a live cluster or one in files, not both",
        ],
    ),
    "no names": (
        "explain service/a b vm/ pod/A vm/a/b",
        [
            "got 'service/a': expected vm/NAME, vmi/NAME or pod/NAME",
            "got 'vm/': '' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME or pod/NAME",
            "got 'pod/A': 'A' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME or pod/NAME",
            "got 'vm/a/b': 'a/b' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME or pod/NAME",
        ],
    ),
    "a type alone": ("explain vm", ["got 'vm' without a name: expected vm/NAME, vmi/NAME or pod/NAME"]),
    "unknown flag": (SERVE + "--lisen :1", ["unknown option '--lisen'; did you mean --listen?"]),
    "shortened flag": (SERVE + "--long x", ["unknown option '--long'; did you mean --longhorn-namespace?"]),
    "shortened flag, and another is near": ("status --al", ["unknown option '--al'; did you mean --all-namespaces?"]),
    "names and labels of candidates": (
        "candidates db -l app=db",
        ["got --selector and names of VMs: expected one of the two"],
    ),
    "flag without value": (SERVE + "--mode", ["Option '--mode' requires an argument."]),
    "bad output": (
        "explain vm/a -o xml",
        ["--output: got 'xml', expected text, yaml or json"],
    ),
    "a word too many": ("version now", ["Got unexpected extra argument (now)"]),
}


@pytest.mark.parametrize(("words", "problems"), TYPED.values(), ids=TYPED.keys())
def test_what_is_typed_wrongly_is_reported_at_once(
    words: str, problems: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every problem in a sentence of its own, where to read on, exit code 2, and nothing on standard output."""
    assert cli.main(words.split()) == 2
    out, err = capsys.readouterr()
    *told, see = err.splitlines()
    assert out == ""
    assert told == [f"error: {problem}" for problem in problems]
    assert see.startswith("See 'kubevirt-coschedule")


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What came from the environment is called by its variable's name."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_MODE", "hard")
    assert cli.main(SERVE.split()) == 2
    assert "error: KUBEVIRT_COSCHEDULE_MODE: got 'hard', expected" in capsys.readouterr().err


def test_a_flag_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flag, then variable, then default; an empty variable counts as one that was set."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_MODE", "off")
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_LISTEN", "[::1]:1")
    found = values(cli.COMMANDS, *SERVE.split(), "--mode", "preferred")
    assert (found["mode"], str(found["listen"]), str(found["health_listen"])) == ("preferred", "[::1]:1", ":8080")
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_MODE", "")
    with pytest.raises(BadSettings, match="KUBEVIRT_COSCHEDULE_MODE: got ''"):
        values(cli.COMMANDS, *SERVE.split())


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), SystemExit(3)], ids=["interrupt", "exit"])
def test_an_interrupt_is_no_traceback(
    failure: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends with the shell's own code for it; what is meant to end the process does."""

    def fail(_: object) -> int:
        raise failure

    monkeypatch.setattr(run, "serve", fail)
    try:
        code = cli.main(SERVE.split())
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == (130 if isinstance(failure, KeyboardInterrupt) else 3)
    assert capsys.readouterr() == ("", "")


def test_many_problems_are_cut_short(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory full of mistakes shows the first twenty and how many more there are."""
    pair = issue(tmp_path)
    claims = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": 1}}] * 25
    manifests = write_cluster(tmp_path / "cluster.json", [*cluster(), *claims])
    flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
    assert cli.main(["serve", *map(str, flags)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 21
    assert told[0].endswith(
        "PersistentVolumeClaim: metadata.name: got a number, expected a string: put the value in quotes"
    )
    assert told[-1] == "error: and 5 more"
