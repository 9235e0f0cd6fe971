"""The command line in-process: help, what is wrong with what was typed, environment variables, exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click
import pytest
from support.drivers.command_lines import values
from support.drivers.serving import ROOT, cluster, issue, write_cluster

from webhook import __version__, cli
from webhook.app import run
from webhook.settings import ENVIRONMENT_PREFIX


@pytest.mark.parametrize("words", ["-h", "--help"])
def test_help_lists_every_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its purpose, which is cut nowhere."""
    assert cli.main([words]) == 0
    out, err = capsys.readouterr()
    lines = out.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in lines] == sorted(cli.COMMANDS.commands)
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    assert err == ""


def test_without_a_command_the_program_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that forgot the command must not go on as if all were well."""
    assert cli.main([]) == 2
    assert "Commands:\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", cli.COMMANDS.commands)
def test_help_of_a_command_says_all_of_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every flag with its variable and its default, examples, usage, exit codes; in lines that fit a terminal."""
    assert cli.main([name, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Usage: kubevirt-coschedule {name} [OPTIONS]")
    assert ("Examples:\n    " in out) == (name != "demo")
    assert "\n  Exit codes: 0 " in out
    for option in (each for each in cli.COMMANDS.commands[name].params if isinstance(each, click.Option)):
        assert re.search(rf"^  (-\w, )?{option.opts[0]}( \S+)?( |$)", out, re.MULTILINE)
        defaults = [f"default: {option.default}"] if isinstance(option.default, str) else []
        told = [f"env var: {ENVIRONMENT_PREFIX}_", *(["required]"] if option.required else defaults)]
        assert all(each in " ".join(out.split()) for each in told)
    assert max(map(len, out.splitlines())) <= 80


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The program's name and version on one line."""
    assert cli.main(["-v"]) == 0
    assert capsys.readouterr().out == f"kubevirt-coschedule, version {__version__}\n"


SERVE: Final = "serve --manifests m --tls-cert-file c --tls-private-key-file k "
INVALID: Final = "Invalid value for '--{}' (env var: 'KUBEVIRT_COSCHEDULE_{}'): "
EXPLAINED: Final = (
    "expected a VM, TYPE/NAME, --all-namespaces, --selector, or else --filename FILE; a file of a whole cluster is for "
    "--manifests"
)
TYPED: Final = {
    "unknown command": ("serv", "No such command 'serv'. Did you mean 'serve'?"),
    "nothing for explain": ("explain", f"nothing to explain: {EXPLAINED}"),
    "no address": (
        SERVE + "--listen 9443",
        INVALID.format("listen", "LISTEN")
        + "got '9443', expected HOST:PORT, :PORT or [IPV6]:PORT with a port from 0 to 65535",
    ),
    "events on what files describe": (
        SERVE + "--events on",
        "got --events on and --manifests m: expected a live cluster for the events",
    ),
    "a name of callers, and no authority": (
        SERVE + "--client-name x",
        "got --client-name x without --client-ca-file: expected the authority that issues callers' certificates, too",
    ),
    "names and a file": (
        "explain vm/a pod/b -f vm.yaml",
        f"got objects of the cluster and --filename: {EXPLAINED}",
    ),
    "labels and a file": ("explain -l a=b -f vm.yaml", f"got objects of the cluster and --filename: {EXPLAINED}"),
    "a pod of all namespaces": ("explain -A pod/b", "got 'pod/b': expected the name of a VM, or vm/NAME"),
    "manifests, and a kubeconfig": (
        "explain vm/a --manifests m --context c --kubeconfig k",
        "got --kubeconfig k and --manifests m: expected a live cluster or one in files, not both",
    ),
    "no type": ("explain service/a b", "got 'service/a': expected vm/NAME, vmi/NAME or pod/NAME"),
    "no name": (
        "explain b vm/a/b",
        "got 'vm/a/b': 'a/b' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME or pod/NAME",
    ),
    "a type alone": ("explain vm", "got 'vm' without a name: expected vm/NAME, vmi/NAME or pod/NAME"),
    "names and labels of candidates": (
        "candidates db -l app=db",
        "got --selector and names of VMs: expected one of the two",
    ),
    "all namespaces and one": (
        "status -A -n vms",
        "got --all-namespaces and --namespace: expected one of the two",
    ),
}


@pytest.mark.parametrize(("words", "problem"), TYPED.values(), ids=TYPED.keys())
def test_what_is_typed_wrongly_is_a_sentence(words: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where to read on, exit code 2, and nothing on standard output."""
    assert cli.main(words.split()) == 2
    out, err = capsys.readouterr()
    usage, see, _, told = err.splitlines()
    assert out == ""
    assert usage.startswith("Usage: kubevirt-coschedule")
    assert see.endswith(" --help' for help.")
    assert told == f"Error: {problem}"


def test_a_flag_wins_over_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flag, then variable, then default."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_MODE", "off")
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_LISTEN", "[::1]:1")
    found = values(cli.COMMANDS, *SERVE.split(), "--mode", "preferred")
    assert (found["mode"], str(found["listen"]), str(found["health_listen"])) == ("preferred", "[::1]:1", ":8080")


FOUND: Final = "status -o name -n prod-vms --manifests manifests/examples/cluster"
EXCLUDED: Final = {
    "status -o name -A --manifests manifests/examples/cluster": "NAMESPACE=other",
    FOUND: "ALL_NAMESPACES=true",
    f"{FOUND} web01": "SELECTOR=app=nothing",
    f"{FOUND} --apart": "CONTEXT=staging",
    f"{FOUND} --no-headers": "KUBECONFIG=/none",
    "explain -f manifests/examples/virtual-machine.yaml --manifests manifests/examples/cluster": "ALL_NAMESPACES=1",
    "explain vm/db01 --kubeconfig none": "MANIFESTS=manifests/examples/cluster",
    "explain vm/db01 -n prod-vms --manifests manifests/examples/cluster": "FILENAME=none",
}


@pytest.mark.parametrize(("words", "variable"), EXCLUDED.items(), ids=EXCLUDED.values())
def test_a_flag_wins_over_the_variable_of_an_option_that_it_excludes(
    words: str, variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shell has one variable for all commands, and each command can have a flag."""
    monkeypatch.chdir(ROOT)
    told = cli.main(words.split()), capsys.readouterr()
    name, _, value = variable.partition("=")
    monkeypatch.setenv(f"KUBEVIRT_COSCHEDULE_{name}", value)
    assert (cli.main(words.split()), capsys.readouterr()) == told
    assert "expected one of the two" not in told[1].err


def test_two_variables_that_exclude_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody typed one of them."""
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_ALL_NAMESPACES", "1")
    monkeypatch.setenv("KUBEVIRT_COSCHEDULE_NAMESPACE", "vms")
    assert cli.main(["status"]) == 2
    assert "got --all-namespaces and --namespace: expected one of the two" in capsys.readouterr().err


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
        "PersistentVolumeClaim 1: metadata.name: got a number, expected a string: put the value in quotes"
    )
    assert told[-1] == "and 5 more"
