"""`serve` as a real process: it starts, answers over TLS and ends at a signal, or reports why it does not start."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest
from support.drivers.http_calls import Reply, request
from support.drivers.serving import Client, Pair, Serving, cluster, issue, serving, write_cluster
from support.objects import builders
from support.waits import MAX_WAIT_SECONDS

from webhook import cli
from webhook.app.run import SHUTDOWN_GRACE_SECONDS

pytestmark = pytest.mark.slow

BODY: Final = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
HEALTH: Final = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
_WARM_CALLS: Final = 20


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
    """It answers a review. After SIGTERM it is not ready but answers new callers; after a second signal it ends.

    The page is off, and its paths get 404.
    """
    with serving(*flags(pair, manifests), "--page=off", log=tmp_path / "log") as server:
        with Client(server.port, pair.trust) as client:
            response = client.ask(request(BODY)).response
            assert (response["allowed"], response["auditAnnotations"]["node"]) == (True, "node-a")
            assert (health(server, b"healthz"), health(server, b"readyz")) == (200, 200)
            assert {health(server, path) for path in (b"", b"page.js", b"api/state")} == {404}
            whole = request(BODY, expect="100-continue")
            assert client.ask(whole[: -len(BODY)]).status == 100  # a call is under way from here
            server.signal(signal.SIGTERM)
            server.until_logged("draining")
            assert (health(server, b"healthz"), health(server, b"readyz")) == (200, 503)
            with Client(server.port, pair.trust) as late:
                assert late.ask(request(BODY)).response["allowed"] is True
            server.signal(signal.SIGTERM)
            assert server.process.wait(MAX_WAIT_SECONDS) == 1
        started, admission, draining, late_admission = server.lines()
    assert started["objects"] == len(cluster())
    assert (admission["message"], admission["decision"], admission["nodes"]) == ("admission", "required", ["node-a"])
    assert (draining["message"], draining["drain_seconds"]) == ("draining", 15)
    assert late_admission["message"] == "admission"


@pytest.mark.parametrize(
    ("number", "given"),
    [
        (signal.SIGTERM, {"DRAIN_SECONDS": "0"}),
        (signal.SIGINT, {}),
    ],
    ids=["SIGTERM", "SIGINT"],
)
def test_a_signal_ends_it_well(
    pair: Pair, manifests: Path, tmp_path: Path, number: signal.Signals, given: dict[str, str]
) -> None:
    """It serves with settings from the environment. SIGTERM or Ctrl-C ends it with 0, even with idle connections.

    Ctrl-C ends a server of files at once: no API server has it among the endpoints of a Service.
    """
    given = {
        **given,
        "TLS_CERT_FILE": str(pair.cert_file),
        "TLS_PRIVATE_KEY_FILE": str(pair.key_file),
        "MANIFESTS": str(manifests),
        "MODE": "preferred",
    }
    environment = {f"KUBEVIRT_COSCHEDULE_{name}": value for name, value in given.items()}
    with serving(log=tmp_path / "log", environment=environment) as server:
        with Client(server.port, pair.trust) as idle:
            assert idle.ask(request(BODY)).response["auditAnnotations"]["decision"] == "preferred"
            server.signal(number)
            assert server.process.wait(MAX_WAIT_SECONDS) == 0
            with pytest.raises(EOFError):
                idle.reply()
        lines = server.lines()
    assert [line["message"] for line in lines] == ["serving", "admission", "draining", "stopping", "stopped"]
    assert lines[2]["drain_seconds"] == 0


class Caller(Thread):
    """A client that calls again and again, on one connection while it can, until the server does not listen."""

    def __init__(self, server: Serving, pair: Pair) -> None:
        super().__init__(daemon=True)
        self._server, self._pair = server, pair
        self.replies: list[Reply] = []
        self.failures: list[str] = []
        self.warm = Event()

    def run(self) -> None:
        """Call until the server does not listen any more."""
        while client := self._dial():
            with client:
                while self._call(client):
                    pass

    def _dial(self) -> Client | None:
        try:
            return Client(self._server.port, self._pair.trust)
        except OSError as error:
            if '"message":"stopping"' not in self._server.log.read_text():
                self.failures.append(f"connection after call {len(self.replies)}: {error!r}")
            return None

    def _call(self, client: Client) -> bool:
        """Return whether the connection may be used again."""
        try:
            self.replies.append(client.ask(request(BODY)))
        except (EOFError, OSError) as error:
            self.failures.append(f"call {len(self.replies)}: {error!r}")
            return False
        if len(self.replies) == _WARM_CALLS:
            self.warm.set()
        return self.replies[-1].headers.get("connection") != "close"


# CPython leaves its SSLSocket open if the peer resets the connection before the handshake begins.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
def test_nobody_who_calls_while_it_goes_is_left_without_an_answer(pair: Pair, manifests: Path, tmp_path: Path) -> None:
    """Callers that never pause, and one with a slow body: each call is answered, and the process ends in time."""
    with serving(*flags(pair, manifests), "--drain-seconds=1", log=tmp_path / "log") as server:
        callers = [Caller(server, pair) for _ in range(3)]
        with Client(server.port, pair.trust) as idle, Client(server.port, pair.trust) as slow:
            assert idle.ask(request(BODY)).status == 200
            for caller in callers:
                caller.start()
            assert all(caller.warm.wait(MAX_WAIT_SECONDS) for caller in callers)
            whole = request(BODY, expect="100-continue")
            assert slow.ask(whole[: -len(BODY)]).status == 100
            server.signal(signal.SIGTERM)
            server.until_logged("stopping")
            assert slow.ask(BODY).headers["connection"] == "close"
            assert server.process.wait(MAX_WAIT_SECONDS) == 0
            with pytest.raises(EOFError):
                idle.reply()
        for caller in callers:
            caller.join(MAX_WAIT_SECONDS)
        lines = server.lines()
    replies = [reply for caller in callers for reply in caller.replies]
    assert [failure for caller in callers for failure in caller.failures] == []
    assert {reply.status for reply in replies} == {200}
    assert len([line for line in lines if line["message"] == "admission"]) == len(replies) + 2
    # More than the one that each gets at the end. How many more depends on how busy the machine is.
    assert sum(reply.headers.get("connection") == "close" for reply in replies) > len(callers)
    at = {line["message"]: datetime.fromisoformat(line["time"]) for line in lines}
    assert (at["stopping"] - at["draining"]).total_seconds() > 0.9  # the loop's clock and the log's are two
    assert (at["stopped"] - at["stopping"]).total_seconds() < SHUTDOWN_GRACE_SECONDS


def _break_manifests(_: Pair, manifests: Path) -> None:
    (manifests / "a.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata:\n  name: [a]\n")
    (manifests / "b.yml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\nkind: Node\n")
    (manifests / "c.json").write_text('{"apiVersion": "v1",\n "kind": "Node"\n')
    (manifests / "d.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n")


BAD: Final[dict[str, tuple[Callable[[Pair, Path], object], list[str]]]] = {
    "key of another": (
        lambda pair, manifests: issue(manifests).key_file.rename(pair.key_file),
        ["tls.key: not the private key of "],
    ),
    "broken manifests": (
        _break_manifests,
        [
            "/b.yml:5: not a Kubernetes object: apiVersion: got nothing, expected a string",
            "/c.json:3: did not find expected",
            "/a.yaml:1: Node: metadata.name: got a list, expected a string",
            "Node node-a is described twice, first in ",
        ],
    ),
}


@pytest.mark.parametrize(("harm", "sentences"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_served_is_said_in_sentences(
    pair: Pair,
    manifests: Path,
    capsys: pytest.CaptureFixture[str],
    harm: Callable[[Pair, Path], object],
    sentences: list[str],
) -> None:
    """One line for each problem on standard error, all at once, exit code 2, and no traceback."""
    harm(pair, manifests)
    assert cli.main(["serve", *flags(pair, manifests), "--listen=127.0.0.1:0", "--health-listen=127.0.0.1:0"]) == 2
    assert_said(capsys, sentences)


@pytest.mark.parametrize("flag", ["--listen", "--health-listen"])
def test_a_port_in_use_is_one_sentence(
    pair: Pair, manifests: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    """The sentence has the address, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listen = {"--listen": "127.0.0.1:0", "--health-listen": "127.0.0.1:0"} | {flag: address}
        words = (f"{name}={value}" for name, value in listen.items())
        assert cli.main(["serve", *flags(pair, manifests), *words]) == 2
    assert_said(capsys, [f"can't listen on {address}: Address already in use; choose another address"])


def assert_said(capsys: pytest.CaptureFixture[str], sentences: list[str]) -> None:
    """These sentences are on standard error, one a line."""
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("{")]
    assert (out, len(lines), "Traceback" in err) == ("", len(sentences), False), err
    assert lines[0].startswith("Error: ")
    assert all(sentence in line for line, sentence in zip(lines, sentences, strict=True))
