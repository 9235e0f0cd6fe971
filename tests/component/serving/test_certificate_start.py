"""The start without a pair: when the process waits, what it reports, and that it serves when it can."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.mounted import DAY, END, NOON, SECOND, Authority, Clock, Mounted, good, served
from support.drivers.http_calls import Reply, request
from support.drivers.serving import Client, Serving, cluster, port_of, spawned, until_logged, write_cluster
from support.objects import builders
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.pem import BadCertificate
from webhook.serving.certificate import ServingCertificate

pytestmark = pytest.mark.slow


def _plain(payload: Mapping[str, bytes]) -> Callable[[Mounted], None]:
    """A directory with files that a user wrote, which no kubelet updates."""

    def write(mounted: Mounted) -> None:
        shutil.rmtree(mounted.directory)
        mounted.directory.mkdir()
        for name, content in payload.items():
            (mounted.directory / name).write_bytes(content)

    return write


WAITED_FOR: Final[dict[str, Callable[[Mounted], object]]] = {
    "no Secret": lambda _: None,
    "Secret that is torn": lambda mounted: mounted.put({**good().payload, "tls.key": good().key}),
    "Secret that expired": lambda mounted: mounted.put(good(not_after=NOON).payload),
    "empty directory": _plain({}),
    "empty files": _plain({"tls.crt": b"", "tls.key": b""}),
}


@pytest.mark.parametrize("given", WAITED_FOR.values(), ids=WAITED_FOR)
def test_the_start_waits_for_a_pair_that_will_be_repaired(
    mounted: Mounted, caplog: pytest.LogCaptureFixture, given: Callable[[Mounted], object]
) -> None:
    """The problem is logged at once and each minute, and /readyz fails, until there is a good pair."""
    given(mounted)
    clock = Clock()
    certificate = ServingCertificate(mounted.files, now=clock)
    for seconds in range(121):
        clock.now = NOON + seconds * SECOND
        certificate.check_files()
    assert [record.getMessage() for record in caplog.records] == ["waiting for a certificate"] * 3
    assert not certificate.available.is_set()
    check = certificate.check()
    assert (check.ok, check.gates) == (False, True)
    assert check.detail.startswith(f"waiting for a certificate that can be served: {mounted.directory}/tls.")
    pair = good()
    for name, content in pair.payload.items():
        (mounted.directory / name).unlink(missing_ok=True)
        (mounted.directory / name).write_bytes(content)
    certificate.check_files()
    assert certificate.available.is_set()
    assert served(certificate) == pair.der
    assert certificate.check().ok
    assert certificate.reloads == 0


REFUSED: Final[dict[str, Callable[[Mounted], object]]] = {
    "no directory": lambda mounted: shutil.rmtree(mounted.directory),
    "files without a key": _plain({"tls.crt": good().certificate}),
    "files that are torn": _plain({**good().payload, "tls.key": good().key}),
    "files that expired": _plain(good(not_after=NOON).payload),
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
def test_files_that_were_given_by_hand_are_refused(
    mounted: Mounted, caplog: pytest.LogCaptureFixture, given: Callable[[Mounted], object]
) -> None:
    """No other program would repair these files. The exception has the sentence, and the log does not repeat it."""
    given(mounted)
    with pytest.raises(BadCertificate):
        ServingCertificate(mounted.files, now=Clock())
    assert caplog.records == []


@contextmanager
def waiting(mounted: Mounted, directory: Path) -> Iterator[Serving]:
    """A `serve` process without a certificate; its port is 0."""
    manifests = write_cluster(directory / "cluster.json", cluster())
    files = mounted.files
    words = [f"--tls-cert-file={files.cert_file}", f"--tls-private-key-file={files.key_file}"]
    words += [f"--manifests={manifests}", "--listen=127.0.0.1:0", "--health-listen=127.0.0.1:0", "--drain-seconds=0"]
    log = directory / "log"
    with spawned([sys.executable, "-m", "webhook", "serve", *words], log) as process:
        line = until_logged(process, log, "not serving yet")
        yield Serving(process, 0, port_of(line["health_listen"]), log)


def health(server: Serving, path: str) -> Reply:
    """The answer of a health endpoint."""
    with Client(server.health_port) as client:
        return client.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())


def test_a_server_without_a_secret_waits_serves_and_follows_it(mounted: Mounted, tmp_path: Path) -> None:
    """It is alive and not ready, and serves when the Secret comes. A connection survives the next pair."""
    authority = Authority()
    first, second = authority.issue(), authority.issue(not_after=END + 999 * DAY)
    with waiting(mounted, tmp_path) as server:
        assert health(server, "/healthz").status == 200
        unready = health(server, "/readyz")
        assert unready.status == 503
        assert unready.sentence == (
            f"certificate: waiting for a certificate that can be served: {mounted.directory}/tls.crt: "
            "No such file or directory; expected a PEM file with the serving certificate"
        )
        mounted.put(first.payload)
        port = port_of(server.until_logged("serving")["listen"])
        assert health(server, "/readyz").status == 200
        review = request(json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode())
        with Client(port, authority.trust()) as held:
            assert held.ask(review).response["allowed"] is True
            mounted.put(second.payload)
            assert server.until_logged("certificate loaded")["valid_until"] == "2028-12-25T00:00:00Z"
            assert held.ask(review).response["allowed"] is True
            with Client(port, authority.trust()) as new:
                assert new.ask(review).response["allowed"] is True
                assert [shown(client) for client in (held, new)] == [first.der, second.der]
        assert "[+]certificate ok: valid until 2028-12-25T00:00:00Z" in health(server, "/readyz?verbose").body.decode()
        server.signal(signal.SIGTERM)
        assert server.process.wait(MAX_WAIT_SECONDS) == 0


def shown(client: Client) -> bytes:
    """Return the certificate of a connection."""
    assert isinstance(client.socket, ssl.SSLSocket)
    return client.socket.getpeercert(binary_form=True) or b""


def test_a_signal_ends_the_waiting(mounted: Mounted, tmp_path: Path) -> None:
    """It ends at once with 0, because no connection needs a drain."""
    with waiting(mounted, tmp_path) as server:
        server.signal(signal.SIGTERM)
        assert server.process.wait(MAX_WAIT_SECONDS) == 0
        messages = [line["message"] for line in server.lines()]
    assert messages == ["waiting for a certificate", "not serving yet", "stopped"]
