"""ApiError: why a call to the API server got no answer."""

from __future__ import annotations

import os
from typing import Final

import aiohttp

from webhook.errors import UserError

CONNECT_SECONDS: Final = 10.0


class BadKubeconfig(UserError):
    """No way to an API server: the kubeconfig or the service account can't be used."""


class ApiError(Exception):
    """No answer: the API server could not be reached, or its answer broke off. `silent`: no byte came in time."""

    def __init__(self, sentence: str, *, silent: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent


def sentence(error: Exception) -> str:
    """Return why a request failed, in words without anything secret."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {shown(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"no TLS with {error.host}:{error.port}: {shown(error.os_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0  # asyncio's message repeats the address; a resolver's number is negative
        why = os.strerror(number) if number > 0 else shown(error.os_error.strerror or error.os_error)
        return f"can't connect to {error.host}:{error.port}: {why}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"can't connect in {CONNECT_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its answer broke off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    return shown(error)


def shown(error: object) -> str:
    """Return what a library says about an error: one line of printable ASCII, 200 characters at most."""
    text = " ".join(str(error).split()) or type(error).__name__
    return ascii(text[:200])[1:-1]
