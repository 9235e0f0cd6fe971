"""What a TLS handshake with a server gets: as an API server makes it, then without any trust, to see why not."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from cryptography import x509
from msgspec import Struct

from certs.x509 import pki
from webhook.component_base.address import Address

_SECONDS: Final = 5.0


class Unreachable(Exception):
    """Nobody answers there, or not with TLS."""


class Handshake(Struct, frozen=True):
    """What came of it: the certificate, and why it was refused where it was."""

    certificate: x509.Certificate
    protocol: str
    refused: str | None


def shake(address: Address, name: str, authorities: bytes) -> Handshake:
    """Shake hands as somebody who trusts these authorities and asks for that name.

    Raises:
        Unreachable: there was no handshake.
    """
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    refused: str | None = "there is no authority to trust"
    readable = pki.pem(pki.certificates(authorities))
    try:
        if readable:
            trust.load_verify_locations(cadata=readable.decode())
            try:
                return _shake(address, name, trust, None)
            except ssl.SSLCertVerificationError as error:
                refused = error.verify_message
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
        return _shake(address, name, trust, refused)
    except ssl.SSLError as error:
        raise Unreachable(f"{address}: no TLS handshake: {error.reason or error}") from None
    except OSError as error:
        raise Unreachable(f"{address}: {error.strerror or error}") from None


def _shake(address: Address, name: str, trust: ssl.SSLContext, refused: str | None) -> Handshake:
    with (
        socket.create_connection((address.host or "localhost", address.port), timeout=_SECONDS) as plain,
        trust.wrap_socket(plain, server_hostname=name) as secured,
    ):
        der = secured.getpeercert(binary_form=True)
        if der is None:
            raise Unreachable(f"{address}: no certificate came")
        return Handshake(x509.load_der_x509_certificate(der), secured.version() or "", refused)
