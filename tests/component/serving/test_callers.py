"""Client certificates: with --client-ca-file only callers of the right authority, with the right name, are answered."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import trustme
from support.control_plane.mounted import Authority, Issued, Mounted
from support.drivers.http_calls import Reply, request
from support.drivers.serving import Client, cluster, serving, write_cluster
from support.fakes.wire import Listening, Wire, echoing
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.pem import Problem
from webhook.serving.certificate import ServingCertificate
from webhook.serving.tls import TLSFiles

CALL: Final = request(b"{}")
NAME: Final = "kube-apiserver"
SERVERS: Final = Authority()
CALLERS: Final = Authority()
STRANGERS: Final = Authority()
PAST: Final = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC))
UNHEARD: Final = (ssl.SSLError, ConnectionError, EOFError)  # whichever comes first


class Guarded:
    """A listener that requires certificates of the authority CALLERS, and a name if one is given."""

    def __init__(self, directory: Path, name: str | None) -> None:
        self._directory, self._name = directory, name
        self.mounted = Mounted(directory / "tls")
        self.pair = SERVERS.issue()
        self.trust_callers_of(CALLERS)
        self.certificate = ServingCertificate(self.files)

    @property
    def files(self) -> TLSFiles:
        """Create the files and the certificate."""
        directory = self.mounted.directory
        names = {"cert_file": "tls.crt", "key_file": "tls.key", "client_ca_file": "client-ca.crt"}
        return TLSFiles(**{field: directory / name for field, name in names.items()})

    def trust_callers_of(self, authority: Authority) -> None:
        """Replace the authorities in the file."""
        self.mounted.put({**self.pair.payload, "client-ca.crt": authority.pem})

    def listening(self) -> AbstractAsyncContextManager[Listening]:
        """Run the listener."""
        return echoing(self.certificate, SERVERS.trust(), client_name=self._name)

    async def call(self, server: Listening, caller: Issued | None) -> Reply:
        """Return the answer to a caller with this certificate."""
        async with await Wire.open(server.port, SERVERS.trust(caller, self._directory)) as wire:
            return await wire.ask(CALL)


PASSED: Final = {
    "by common name": (NAME, CALLERS.issue(common_name=NAME)),
    "by DNS name": (NAME, CALLERS.issue("a.example", NAME)),
    "by DNS name, with another common name": (NAME, CALLERS.issue(NAME, common_name="other")),
    "any name": (None, CALLERS.issue(common_name="anybody")),
}


@pytest.mark.parametrize(("name", "caller"), PASSED.values(), ids=PASSED)
async def test_the_right_caller_is_answered(tmp_path: Path, name: str | None, caller: Issued) -> None:
    """By common name (Kubernetes' user name) or DNS name. Without an expected name the authority is enough."""
    guarded = Guarded(tmp_path, name)
    async with guarded.listening() as server:
        assert (await guarded.call(server, caller)).status == 200


async def test_an_authority_need_not_be_a_root(tmp_path: Path) -> None:
    """All authorities in the file are trusted, as in every such file of Kubernetes."""
    guarded = Guarded(tmp_path, NAME)
    intermediate = Authority(trustme.CA())
    guarded.trust_callers_of(intermediate)
    guarded.certificate.check_files()
    async with guarded.listening() as server:
        assert (await guarded.call(server, intermediate.issue(common_name=NAME))).status == 200


MISNAMED: Final = {
    "another common name": (CALLERS.issue(common_name="kubelet"), "kubelet"),
    "another DNS name": (CALLERS.issue("a.example"), "a.example"),
    "part of the name": (CALLERS.issue(common_name="kube-apiserver-2"), "kube-apiserver-2"),
    "another case": (CALLERS.issue(common_name="Kube-APIserver"), "Kube-APIserver"),
    "an address": (CALLERS.issue("127.0.0.1"), "one without a name"),
    "odd letters": (CALLERS.issue(common_name="a\nb\u2603"), "a\\nb\\u2603"),
}


@pytest.mark.parametrize(("caller", "shown"), MISNAMED.values(), ids=MISNAMED)
async def test_a_caller_of_another_name_gets_one_sentence(tmp_path: Path, caller: Issued, shown: str) -> None:
    """The status is 403, and the sentence has the expected name."""
    guarded = Guarded(tmp_path, NAME)
    async with guarded.listening() as server:
        reply = await guarded.call(server, caller)
    assert reply.status == 403
    assert reply.sentence == f"got the client certificate of {shown}, expected that of {NAME}"
    assert reply.headers["connection"] == "close"


async def test_a_new_authority_is_taken_without_closing_a_connection(tmp_path: Path) -> None:
    """After the next check, callers of the old authority fail. Their existing connections continue."""
    guarded = Guarded(tmp_path, NAME)
    old, new = CALLERS.issue(common_name=NAME), STRANGERS.issue(common_name=NAME)
    async with (
        guarded.listening() as server,
        asyncio.timeout(MAX_WAIT_SECONDS),
        await Wire.open(server.port, SERVERS.trust(old, tmp_path)) as held,
    ):
        assert (await held.ask(CALL)).status == 200
        guarded.trust_callers_of(STRANGERS)
        guarded.certificate.check_files()
        assert (await guarded.call(server, new)).status == 200
        with pytest.raises(UNHEARD):
            await guarded.call(server, old)
        assert (await held.ask(CALL)).status == 200


BAD: Final = {
    "gone": ({}, Problem.MISSING, "client-ca.crt: No such file or directory; expected a PEM file with the authority"),
    "empty": ({"client-ca.crt": b""}, Problem.MISSING, "client-ca.crt: no certificate in it"),
    "no PEM": ({"client-ca.crt": b"\xff" * 9}, Problem.MALFORMED, "client-ca.crt: no certificate in it"),
    "unreadable": ({"client-ca.crt": None}, Problem.UNREADABLE, "client-ca.crt: Is a directory"),
    "expired": (
        {"client-ca.crt": CALLERS.issue(common_name="old", not_before=PAST[0], not_after=PAST[1]).certificate},
        Problem.EXPIRED,
        "client-ca.crt: no authority in it is valid now",
    ),
}


@pytest.mark.parametrize(("harm", "problem", "sentence"), BAD.values(), ids=BAD)
async def test_a_bad_file_of_authorities_keeps_the_old_ones(
    tmp_path: Path, harm: dict[str, bytes | None], problem: Problem, sentence: str
) -> None:
    """A file that can't be used neither lets callers in unverified, nor refuses all of them."""
    guarded = Guarded(tmp_path, NAME)
    async with guarded.listening() as server:
        guarded.mounted.put({**SERVERS.issue().payload, **harm})
        guarded.certificate.check_files()
        assert guarded.certificate.failures == {problem: 1}
        assert sentence in guarded.certificate.check().detail
        assert (await guarded.call(server, CALLERS.issue(common_name=NAME))).status == 200
        with pytest.raises(UNHEARD):
            await guarded.call(server, None)


def test_serve_takes_what_its_flags_say(tmp_path: Path) -> None:
    """The options for authority, name and oldest TLS version work. The health port requires no certificate."""
    guarded = Guarded(tmp_path, NAME)
    manifests = write_cluster(tmp_path / "cluster.json", cluster())
    files = guarded.files
    words = [f"--tls-cert-file={files.cert_file}", f"--tls-private-key-file={files.key_file}"]
    words += [f"--client-ca-file={files.client_ca_file}", f"--client-name={NAME}", "--tls-min-version=VersionTLS12"]
    words += ["--tls-server-name=localhost", f"--manifests={manifests}"]
    statuses = []
    with serving(*words, log=tmp_path / "log") as server:
        for name in (NAME, "kubelet"):
            trust = SERVERS.trust(CALLERS.issue(common_name=name), tmp_path)
            trust.maximum_version = ssl.TLSVersion.TLSv1_2
            with Client(server.port, trust) as client:
                statuses.append(client.ask(CALL).status)
        with Client(server.port, SERVERS.trust()) as client, pytest.raises(EOFError):
            client.reply()
        assert server.until_logged("handshake failed")["reason"] == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
        with Client(server.health_port) as client:
            statuses.append(client.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").status)
    assert statuses == [400, 403, 200]  # 400: heard, and no AdmissionReview
