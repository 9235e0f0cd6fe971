"""A TLS handshake with a server, as an API server makes it. If it fails, a second one accepts any certificate."""

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
    """No server answers at the address, or it does not use TLS."""


class Handshake(Struct, frozen=True):
    """The result of a handshake. `refused`: why a caller would not trust the certificate; None if it would."""

    certificate: x509.Certificate
    protocol: str
    refused: str | None


def shake_hands(address: Address, name: str, authorities: bytes) -> Handshake:
    """Make a handshake as a caller that trusts `authorities` (PEM) and asks for `name`.

    Raises:
        Unreachable: there was no handshake.
    """
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    refused: str | None = "the caller has no authority to trust"
    readable = pki.pem(pki.read_certificates(authorities))
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
            raise Unreachable(f"{address}: the server sent no certificate")
        return Handshake(x509.load_der_x509_certificate(der), secured.version() or "", refused)
