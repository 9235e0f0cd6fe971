"""The command line of the certificate controller: help, mistakes, `issue`, and `keep` without a cluster."""

from __future__ import annotations

import json
import signal
import stat
import sys
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.drivers.serving import port_of, spawned, until_logged
from support.waits import MAX_WAIT_SECONDS

from certs import cli, pki
from certs.pki import Pair

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", cli.COMMANDS.commands)
def test_the_help_of_a_command_lists_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With its variable."""
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    words = "".join(text.split())
    for option in cli.COMMANDS.commands[name].params:
        assert f"{option.opts[0]} " in text
        assert f"KUBEVIRT_COSCHEDULE_CERTS_{option.name}".upper() in words
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["keep", "--lifetime", "1"],
            "Invalid value for '--lifetime' (env var: 'KUBEVIRT_COSCHEDULE_CERTS_LIFETIME'): got '1', expected ",
        ),
        (
            ["keep", "--kubeconfig", "/nowhere"],
            "/nowhere: no such file; expected a kubeconfig: name one by --kubeconfig or in the variable KUBECONFIG",
        ),
        (
            ["issue", "--dir", "/dev/null/x"],
            "/dev/null/x: Not a directory; choose another directory with --dir",
        ),
        (
            ["issue", "--dir", "/dev/null/x", "--name", "\N{LATIN SMALL LETTER E WITH ACUTE}"],
            "--name: got \N{LATIN SMALL LETTER E WITH ACUTE}, expected DNS names and addresses: ",
        ),
    ],
    ids=["duration", "kubeconfig", "no directory", "no name"],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output never has a traceback."""
    assert cli.main(words) == 2
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith(f"Error: {problem}")
    assert said.out == ""


def test_issue_writes_a_pair_whose_key_is_nobody_elses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The directory is created. A second issue replaces the files, whatever their modes are."""
    directory = tmp_path / "new" / "tls"
    for names in (["localhost", "127.0.0.1"], ["web.example.org"]):
        words = ["issue", "--dir", str(directory), *(f"--name={name}" for name in names), "--lifetime", "1d"]
        assert cli.main(words) == 0
        pair = Pair(*((directory / file).read_bytes() for file in ("tls.crt", "tls.key", "ca.crt")))
        assert isinstance(pki.examine(pair, names, datetime.now(UTC)), pki.Servable)
        assert stat.S_IMODE((directory / "tls.key").stat().st_mode) == 0o600
        (directory / "tls.key").chmod(0o644)
    assert capsys.readouterr().out.count("ca.crt that verifies it") == 2


def answer(port: int, path: str) -> tuple[int, str]:
    """Return the answer of the health port."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=MAX_WAIT_SECONDS)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_keep_waits_for_a_cluster_that_does_not_answer_until_a_signal(tmp_path: Path) -> None:
    """It is alive, not ready, and says why. SIGTERM ends it with 0."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {"token": "x"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    words = ["-m", "certs", "keep", "--kubeconfig", str(tmp_path / "config"), "--listen", "127.0.0.1:0"]
    with spawned([sys.executable, *words], tmp_path / "log") as process:
        address = until_logged(process, tmp_path / "log", "keeping")["listen"]
        until_logged(process, tmp_path / "log", "can't read or write the objects, trying again")
        port = port_of(address)
        assert answer(port, "/healthz") == (200, "ok\n")
        code, text = answer(port, "/readyz")
        assert (code, "can't connect to 127.0.0.1:1: Connect" in text) == (503, True)
        assert "errors_total" in answer(port, "/metrics")[1]
        assert answer(port, "/")[0] == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_SECONDS) == 0
    assert until_logged(process, tmp_path / "log", "stopped")
