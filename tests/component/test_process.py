"""`serve` as a real process: it starts, answers over TLS and ends as told, or says in sentences why it does not."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import builders
import pytest
from serving import ROOT, Client, Pair, Serving, cluster, issue, request, serving, write_cluster

BODY: Final = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
HEALTH: Final = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
_PATIENCE_SECONDS: Final = 20.0


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A good certificate."""
    return issue(tmp_path)


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A good cluster, in a directory."""
    directory = tmp_path / "cluster"
    directory.mkdir()
    write_cluster(directory / "cluster.json", cluster())
    return directory


def flags(pair: Pair, manifests: Path) -> tuple[str, ...]:
    """The required flags of `serve`."""
    named = {"tls-cert-file": pair.cert_file, "tls-private-key-file": pair.key_file, "manifests": manifests}
    return tuple(f"--{name}={value}" for name, value in named.items())


def health(server: Serving, path: bytes) -> int:
    """The status of a health endpoint."""
    with Client(server.health_port) as client:
        return client.ask(HEALTH % path).status


def test_it_serves_drains_and_obeys_a_second_signal(pair: Pair, manifests: Path, tmp_path: Path) -> None:
    """A review is answered; on SIGTERM readiness goes while a call is under way; on another the process ends."""
    with serving(*flags(pair, manifests), log=tmp_path / "log") as server:
        with Client(server.port, pair.trust) as client:
            response = client.ask(request(BODY)).response
            assert (response["allowed"], response["auditAnnotations"]["node"]) == (True, "node-a")
            assert (health(server, b"healthz"), health(server, b"readyz")) == (200, 200)
            whole = request(BODY, expect="100-continue")
            assert client.ask(whole[: -len(BODY)]).status == 100  # a call is under way from here
            server.signal(signal.SIGTERM)
            server.until_logged("stopping")
            assert (health(server, b"healthz"), health(server, b"readyz")) == (200, 503)
            server.signal(signal.SIGTERM)
            assert server.process.wait(_PATIENCE_SECONDS) == 1
        started, admission, stopping = server.lines()
    assert started["objects"] == len(cluster())
    assert (admission["message"], admission["decision"], admission["nodes"]) == ("admission", "required", ["node-a"])
    assert stopping["message"] == "stopping"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_it_well(pair: Pair, manifests: Path, tmp_path: Path, number: signal.Signals) -> None:
    """Set by its environment alone it serves, and SIGTERM or Ctrl-C ends it with 0, an idle connection or not."""
    given = {"TLS_CERT_FILE": pair.cert_file, "TLS_PRIVATE_KEY_FILE": pair.key_file, "MANIFESTS": manifests}
    environment = {f"KUBEVIRT_COSCHEDULE_{name}": str(value) for name, value in given.items()}
    environment["KUBEVIRT_COSCHEDULE_MODE"] = "preferred"
    with serving(log=tmp_path / "log", environment=environment) as server:
        with Client(server.port, pair.trust) as idle:
            assert idle.ask(request(BODY)).response["auditAnnotations"]["decision"] == "preferred"
            server.signal(number)
            assert server.process.wait(_PATIENCE_SECONDS) == 0
            with pytest.raises(EOFError):
                idle.reply()
        assert [line["message"] for line in server.lines()] == ["serving", "admission", "stopping", "stopped"]


def _break_manifests(_: Pair, manifests: Path) -> None:
    (manifests / "a.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata:\n  name: [a]\n")
    (manifests / "b.yml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\nkind: Node\n")
    (manifests / "c.json").write_text('{"apiVersion": "v1",\n "kind": "Node"\n')
    (manifests / "d.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n")


BAD: Final[dict[str, tuple[Callable[[Pair, Path], object], list[str]]]] = {
    "missing key": (lambda pair, _: pair.key_file.unlink(), ["tls.key: No such file or directory; expected a PEM"]),
    "key of another": (
        lambda pair, manifests: issue(manifests).key_file.rename(pair.key_file),
        ["tls.key: not the private key of "],
    ),
    "broken manifests": (
        _break_manifests,
        [
            "/b.yml:5: no Kubernetes object: apiVersion: got nothing, expected a string",
            "/c.json:3: did not find expected",
            "/a.yaml:4: Node: metadata.name: Expected `str | null`, got `array`",
            "Node node-a is described twice, first in ",
        ],
    ),
}


@pytest.mark.parametrize(("harm", "sentences"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_served_is_said_in_sentences(
    pair: Pair, manifests: Path, harm: Callable[[Pair, Path], object], sentences: list[str]
) -> None:
    """One line for each problem on standard error, all of them at once, exit code 2, and no traceback."""
    harm(pair, manifests)
    assert_refused([*flags(pair, manifests), "--listen=127.0.0.1:0", "--health-listen=127.0.0.1:0"], sentences)


@pytest.mark.parametrize("flag", ["--listen", "--health-listen"])
def test_a_port_in_use_is_one_sentence(pair: Pair, manifests: Path, flag: str) -> None:
    """It is said which address, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listen = {"--listen": "127.0.0.1:0", "--health-listen": "127.0.0.1:0"} | {flag: address}
        words = [*flags(pair, manifests), *(f"{name}={value}" for name, value in listen.items())]
        assert_refused(words, [f"can't listen on {address}: Address already in use; choose another address"])


def assert_refused(words: list[str], sentences: list[str]) -> None:
    """`serve` ends with 2 and these sentences, a line each."""
    command = [sys.executable, "-m", "webhook", "serve", *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)  # noqa: S603 - our own program
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("{")]
    assert (ended.returncode, ended.stdout) == (2, ""), ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(lines) == len(sentences), ended.stderr
    for line, sentence in zip(lines, sentences, strict=True):
        assert line.startswith("error: ")
        assert sentence in line
