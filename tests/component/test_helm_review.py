"""What the pod of `helm test` says of a webhook: one sentence, and exit code 0 only if all is as expected."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final, NamedTuple

import pytest
from support.control_plane.chart import CHART
from support.drivers.serving import cluster, serving, write_cluster
from support.waits import MAX_WAIT_SECONDS

from certs import cli

SCRIPT: Final = (CHART / "files/tests/review.py").read_text(encoding="utf-8")
OTHER_POD: Final = b'{"response": {"uid": "other", "allowed": true}}'


class Certificate(NamedTuple):
    """The files of a certificate for loopback, and its authority as PEM."""

    cert_file: Path
    key_file: Path
    authority: str


def issue(directory: Path, *names: str) -> Certificate:
    """What `certs issue` writes."""
    assert cli.main(["issue", "--dir", str(directory), *(f"--name={name}" for name in names or ["127.0.0.1"])]) == 0
    return Certificate(directory / "tls.crt", directory / "tls.key", (directory / "ca.crt").read_text())


def ask(port: int, authorities: str, expected: str = "answered") -> tuple[int, str]:
    """The exit code and the sentence of a call, as the pod makes it."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", SCRIPT, f"127.0.0.1:{port}", expected],
        env={**os.environ, "AUTHORITIES": authorities},
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_WAIT_SECONDS,
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    return done.returncode, done.stdout.removeprefix(f"127.0.0.1:{port}: ")


@pytest.fixture
def own(tmp_path: Path) -> Certificate:
    """The certificate of the server."""
    return issue(tmp_path / "own")


@pytest.fixture(params=[False, True], ids=["anybody may call", "callers need a certificate"])
def webhook(own: Certificate, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[int, bool]]:
    """The port of the webhook as it is, and whether callers need a client certificate."""
    objects = write_cluster(tmp_path / "cluster.json", cluster())
    words = ["--tls-cert-file", own.cert_file, "--tls-private-key-file", own.key_file, "--manifests", objects]
    words += ["--client-ca-file", own.cert_file.parent / "ca.crt"] if request.param else []
    with serving(*words, log=tmp_path / "log") as server:
        yield server.port, request.param


def test_the_webhook_answers_or_refuses_as_the_chart_expects(
    webhook: tuple[int, bool], own: Certificate, tmp_path: Path
) -> None:
    """The other result is a failure, and so is a certificate that callers do not trust."""
    port, needs_certificate = webhook
    wanted, other = ("refused", "answered") if needs_certificate else ("answered", "refused")
    code, told = ask(port, own.authority, wanted)
    assert (code, told.split(" ", 1)[0]) == (0, wanted), told
    assert needs_certificate or told.startswith("answered (unchanged: NoOwner); ")
    assert ask(port, own.authority, other)[0] == 1
    stranger = issue(tmp_path / "stranger").authority
    code, told = ask(port, stranger, wanted)
    assert (code, told.split(" (")[0]) == (1, "not trusted")


def test_a_port_where_nobody_listens_is_neither_an_answer_nor_a_refusal(own: Certificate) -> None:
    """Whichever of the two is expected."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    for expected in ("answered", "refused"):
        code, told = ask(port, own.authority, expected)
        assert (code, told.split("; ")[0]) == (1, "not reached ([Errno 111] Connection refused)")


def test_authorities_that_are_no_certificates_are_a_sentence() -> None:
    """As the value of a key that something else was written into."""
    code, told = ask(1, "garbage")
    assert (code, told.split(" (")[0]) == (1, "not reached")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (500, b"no\n", "wrong answer (ValueError: HTTP 500: no)"),
        (200, b"hello", "wrong answer (JSONDecodeError"),
        (200, b"{}", "wrong answer (KeyError"),
        (200, OTHER_POD, "wrong answer (ValueError: expected that pod kubevirt-coschedule-test is allowed, got"),
    ],
    ids=["an error", "no JSON", "no review", "of another pod"],
)
def test_another_server_behind_the_service_is_noticed(status: int, body: bytes, told: str, own: Certificate) -> None:
    """One that callers trust, and whose answer is not the webhook's."""

    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.cert_file, own.key_file)
    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        code, found = ask(server.server_address[1], own.authority)
        server.shutdown()
        thread.join()
    assert (code, found[: len(told)]) == (1, told)
