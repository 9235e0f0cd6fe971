"""Serving pairs, and the volume that a kubelet keeps them in."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import trustme
from cryptography import x509

from webhook.serving.certificate import ServingCertificate
from webhook.serving.tls import TLSFiles

NAME: Final = "localhost"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
NOON: Final = datetime(2026, 2, 1, 12, tzinfo=UTC)
END: Final = datetime(2026, 4, 1, tzinfo=UTC)
DAY, MINUTE, SECOND = timedelta(days=1), timedelta(minutes=1), timedelta(seconds=1)

_NO_CHECK_TIME: Final = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME


class Mounted:
    """A Secret's volume: each content is a directory of its own, and one rename puts it in the place of the last.

    Step by step what kubelets do: pkg/volume/util/atomic_writer.go.
    """

    def __init__(self, directory: Path) -> None:
        """An empty volume, as it is while the Secret does not exist."""
        self.directory = directory
        self._names = count()
        directory.mkdir()
        self.put({})

    @property
    def files(self) -> TLSFiles:
        """The files that `serve` reads."""
        return TLSFiles(cert_file=self.directory / "tls.crt", key_file=self.directory / "tls.key", server_name=NAME)

    def put(self, payload: Mapping[str, bytes | None]) -> None:
        """The volume's content from now on; None stands for a file that can't be read."""
        data, link = self.directory / "..data", self.directory / "..data_tmp"
        before = data.resolve() if data.is_symlink() else None
        stored = self.directory / f"..2026_01_01_00_00_00.{next(self._names):09}"
        stored.mkdir()
        for name, content in payload.items():
            if content is None:
                (stored / name).mkdir()  # reading it fails for root too
            else:
                (stored / name).write_bytes(content)
        link.symlink_to(stored.name)
        link.rename(data)
        for name in payload:
            if not (self.directory / name).is_symlink():
                (self.directory / name).symlink_to(Path("..data") / name)
        for visible in self.directory.iterdir():
            if not visible.name.startswith("..") and visible.name not in payload:
                visible.unlink()
        if before is not None:
            shutil.rmtree(before)


class Issued(NamedTuple):
    """A certificate with its key, in PEM."""

    certificate: bytes
    key: bytes

    @property
    def payload(self) -> dict[str, bytes]:
        """The data of the Secret: file name -> PEM."""
        return {"tls.crt": self.certificate, "tls.key": self.key}

    @property
    def der(self) -> bytes:
        """The certificate as a caller sees it."""
        return ssl.PEM_cert_to_DER_cert(self.certificate.decode())

    @property
    def not_after(self) -> datetime:
        """Its end."""
        return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc


class Authority:
    """Issues pairs, and is trusted."""

    def __init__(self, root: trustme.CA | None = None) -> None:
        """One of its own root, or below another."""
        self._ca = root.create_child_ca() if root else trustme.CA()
        self.pem = self._ca.cert_pem.bytes()

    def issue(
        self,
        *names: str,
        common_name: str | None = None,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
    ) -> Issued:
        """A new pair with a key of its own; for NAME where no name is given."""
        named = names or (() if common_name else (NAME,))
        leaf = self._ca.issue_cert(*named, common_name=common_name, not_before=not_before, not_after=not_after)
        return Issued(leaf.cert_chain_pems[0].bytes(), leaf.private_key_pem.bytes())

    def trust(self, client: Issued | None = None, directory: Path | None = None) -> ssl.SSLContext:
        """What a caller trusts, and shows: `client`, by way of a file in `directory`."""
        context = ssl.create_default_context(cadata=self.pem.decode())
        if client is not None and directory is not None:
            file = directory / "client.pem"
            file.write_bytes(client.key + client.certificate)
            context.load_cert_chain(file)
        return context


AUTHORITY: Final = Authority()


def good(*names: str, **validity: datetime) -> Issued:
    """A pair that is valid from START to END."""
    return AUTHORITY.issue(*names, **{"not_before": START, "not_after": END, **validity})


def served(certificate: ServingCertificate) -> bytes:
    """The certificate that a caller sees."""
    client = AUTHORITY.trust()
    client.verify_mode = ssl.CERT_REQUIRED
    client.verify_flags |= _NO_CHECK_TIME  # the clock is the test's
    return shake_hands(certificate.context, client).getpeercert(binary_form=True) or b""


class Clock:
    """The time, as a test has it."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        """The current time."""
        return self.now


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None = NAME) -> ssl.SSLObject:
    """The client's side after a whole handshake in memory.

    Raises:
        ssl.SSLError: one side refused.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [asking, answering]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
        except ssl.SSLError:
            for other in waiting:  # which hears why
                with suppress(ssl.SSLError):
                    other.do_handshake()
            raise
    return asking
