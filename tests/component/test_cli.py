"""The command line in-process: help, what is wrong with what was typed, environment variables, exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.drivers.serving import cluster, issue, write_cluster
from support.objects import builders

from webhook import __version__, cli, options, settings
from webhook.app import run

_NAMES: Final = [command.name for command in cli.COMMANDS]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have settings of their own."""
    for option in (*settings.SERVE, *settings.EXPLAIN):
        monkeypatch.delenv(option.variable, raising=False)


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"], ["help", "unheard-of"]], ids=" ".join)
def test_help_lists_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the program says what there is."""
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.split("Commands:\n")[1].split("\n\n")[0].splitlines()] == _NAMES
    assert err == ""


@pytest.mark.parametrize("words", ["{} --help", "{} -h", "help {}", "{} --manifests x --help"], ids=str)
@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_help_of_a_command_says_all_of_it(command: cli.Command, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every flag with its variable and its default, examples, usage, exit codes; in lines that fit a terminal."""
    assert cli.main(words.format(command.name).split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"Usage:\n  kubevirt-coschedule {command.name}" in out
    assert "Examples:" in out
    assert "Exit codes:" in out
    for option in command.options:
        expected = f" {option.placeholder}:" if option.default is None else f"={option.default!r}:"
        expected = ":" if option.switch else expected
        assert f"{option.flag}{expected}" in out
        assert f"${option.variable}" in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize("words", [["version"], ["--version"], ["-v"]], ids=" ".join)
def test_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The program's name and version on one line."""
    assert cli.main(words) == 0
    assert capsys.readouterr().out == f"kubevirt-coschedule {__version__}\n"


SERVE: Final = "serve --manifests m --tls-cert-file c --tls-private-key-file k "
TYPED: Final = {
    "unknown command": ("serv", ["unknown command 'serv': expected one of serve, explain, status, demo, version"]),
    "nothing for serve": (
        "serve",
        [
            "--tls-cert-file: got nothing, expected FILE (or set KUBEVIRT_COSCHEDULE_TLS_CERT_FILE)",
            "--tls-private-key-file: got nothing, expected FILE (or set KUBEVIRT_COSCHEDULE_TLS_PRIVATE_KEY_FILE)",
        ],
    ),
    "nothing for explain": (
        "explain",
        ["nothing to explain: expected TYPE/NAME, such as vm/db01, or --filename FILE"],
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
        SERVE + "--log-format xml --log-level loud --log-admissions-per-second all --events yes",
        [
            "--events: got 'yes', expected on or off",
            "--log-format: got 'xml', expected json or text",
            "--log-level: got 'loud', expected debug, info, warning or error",
            "--log-admissions-per-second: got 'all', expected a number, 0 or more, such as 100",
        ],
    ),
    "events on what files describe": (
        SERVE + "--events on",
        ["got --events on and --manifests m: expected a live cluster to tell"],
    ),
    "two clusters for serve": (
        SERVE + "--context c",
        ["got --context c and --manifests m: expected a live cluster or one in files, not both"],
    ),
    "names and a file": (
        "explain vm/a pod/b -f vm.yaml",
        ["got vm/a pod/b and --filename vm.yaml: expected names or a file, not both"],
    ),
    "names and manifests, and a context": (
        "explain vm/a --manifests m --context c --kubeconfig k",
        [
            (
                "got vm/a and --manifests: names are of a live cluster; leave --manifests out, or give the object with "
                "--filename FILE"
            ),
            "got --kubeconfig k and --manifests m: expected a live cluster or one in files, not both",
            "got --context c and --manifests m: expected a live cluster or one in files, not both",
        ],
    ),
    "no names": (
        "explain service/a b vm/ pod/A vm/a/b",
        [
            "got 'service/a': expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME",
            "got 'b': expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME",
            "got 'vm/': '' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME",
            "got 'pod/A': 'A' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME",
            "got 'vm/a/b': 'a/b' can't be a name in Kubernetes; expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME",
        ],
    ),
    "a type alone": ("explain vm", ["got 'vm' without a name: expected vm/NAME, vmi/NAME, pod/NAME or volume/NAME"]),
    "unknown flag": (SERVE + "--lisen :1", ["unrecognized arguments: --lisen :1"]),
    "shortened flag": (SERVE + "--long x", ["unrecognized arguments: --long x"]),
    "flag without value": (SERVE + "--mode", ["argument --mode: expected one argument"]),
    "bad output": (
        "explain vm/a -o xml",
        ["--output: got 'xml', expected text, yaml or json"],
    ),
    "a word too many": ("version now", ["unrecognized arguments: now"]),
}


@pytest.mark.parametrize(("words", "problems"), TYPED.values(), ids=TYPED.keys())
def test_what_is_typed_wrongly_is_told_at_once(
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


def test_a_flag_wins_over_its_variable() -> None:
    """Flag, then variable, then default; an empty variable counts as one that was set."""
    given = {"KUBEVIRT_COSCHEDULE_MODE": "off", "KUBEVIRT_COSCHEDULE_LISTEN": "[::1]:1"}
    flags = dict.fromkeys(("manifests", "tls_cert_file", "tls_private_key_file"), "x") | {"mode": "preferred"}
    found = options.resolve(settings.SERVE, flags, given)
    assert (found["mode"], str(found["listen"]), str(found["health_listen"])) == ("preferred", "[::1]:1", ":8080")
    with pytest.raises(options.BadSettings, match="KUBEVIRT_COSCHEDULE_MODE: got ''"):
        options.resolve(settings.SERVE, {**flags, "mode": None}, {"KUBEVIRT_COSCHEDULE_MODE": ""})


ADDRESSES: Final = {
    ":9443": ("", 9443),
    "127.0.0.1:0": ("127.0.0.1", 0),
    "[::1]:65535": ("::1", 65535),
    "localhost:80": ("localhost", 80),
    "9443": None,
    "::1:80": None,
    "a:": None,
    "a:-1": None,
    "a:65536": None,
    "a:http": None,
    "a:\N{ARABIC-INDIC DIGIT ONE}": None,
    "": None,
}


@pytest.mark.parametrize(("text", "expected"), ADDRESSES.items(), ids=ascii)
def test_an_address_is_host_and_port(text: str, expected: tuple[str, int] | None) -> None:
    """HOST:PORT, :PORT or [IPV6]:PORT, and it is written as it is read."""
    if expected is None:
        with pytest.raises(ValueError, match="expected HOST:PORT"):
            options.address(text)
        return
    assert options.address(text) == expected
    assert str(options.address(text)) == text


SECONDS: Final = {
    "0": 0,
    "15": 15,
    "0.5": 0.5,
    "99999.999": 99999.999,
    "-1": None,
    "+1": None,
    "1s": None,
    "1e3": None,
    "1_0": None,
    " 1": None,
    ".5": None,
    "nan": None,
    "inf": None,
    "100000": None,
    "\N{ARABIC-INDIC DIGIT ONE}": None,
    "": None,
}


@pytest.mark.parametrize(("text", "expected"), SECONDS.items(), ids=ascii)
def test_seconds_are_a_plain_decimal_number(text: str, expected: float | None) -> None:
    """None at all, whole ones and parts of one; no sign, no unit, no exponent."""
    if expected is None:
        with pytest.raises(ValueError, match="expected a number of seconds, 0 or more"):
            options.seconds(text)
        return
    assert options.seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("100", 100), ("999999", 999999), *((odd, None) for odd in ("-1", "1.5", "", "1e3"))],
)
def test_a_count_is_a_plain_number(text: str, expected: int | None) -> None:
    """None at all, or some."""
    if expected is None:
        with pytest.raises(ValueError, match="expected a number, 0 or more"):
            options.count(text)
        return
    assert options.count(text) == expected


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
    assert told[0].endswith("PersistentVolumeClaim: metadata.name: Expected `str | null`, got `int`")
    assert told[-1] == "error: and 5 more"


def test_explain_counts_what_no_rule_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The explanation goes to standard output, what was passed over to standard error."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    manifests = write_cluster(tmp_path / "cluster.json", [*cluster(), secret, {**secret, "metadata": {"name": "t"}}])
    pod = write_cluster(tmp_path / "pod.json", [builders.virt_launcher_pod(claims=["disk"])])
    assert cli.main(["explain", "-f", str(pod), "--manifests", str(manifests), "-n", "vms"]) == 0
    out, err = capsys.readouterr()
    assert "required on node-a" in out
    assert err == f"{manifests}: ignored objects that no rule reads: 2 v1 Secret\n"
