"""The HTTP connection to an API server, and why a call gets no answer."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config.config_exception import ConfigException

from webhook import __version__
from webhook.component_base.client.config import config_problem, one_line
from webhook.component_base.kubeconfig import BadKubeconfig

CONNECT_SECONDS: Final = 10.0
_PIECE_BYTES: Final = 64 * 1024  # of a stream, between which admissions run
_KEEPALIVE: Final = (  # a dead peer is noticed after 10 s + 3 x 5 s
    ("SO_KEEPALIVE", socket.SOL_SOCKET, 1),
    ("TCP_KEEPIDLE", socket.IPPROTO_TCP, 10),
    ("TCP_KEEPINTVL", socket.IPPROTO_TCP, 5),
    ("TCP_KEEPCNT", socket.IPPROTO_TCP, 3),
    ("TCP_USER_TIMEOUT", socket.IPPROTO_TCP, 25_000),
)


class Stream:
    """An answer that is read piece by piece. `status` is the HTTP status, `retry_after` the header Retry-After."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces of at most 64 KiB, which take less than a millisecond each to work on."""
        while piece := await self._response.content.read(_PIECE_BYTES):
            yield piece
            await asyncio.sleep(0)  # `read` does not wait for buffered bytes: let admissions run


def open_client(configuration: Configuration, program: str) -> ApiClient:
    """Return a client for the API server; it sends nothing yet.

    Raises:
        BadKubeconfig: the certificates can't be read.
    """
    try:
        client = ApiClient(configuration)
    except OSError as error:  # ssl.SSLError is one
        files = f"{configuration.ssl_ca_cert} or {configuration.cert_file}"
        raise BadKubeconfig(f"{files}: {one_line(error)}; expected PEM certificates") from None
    client.user_agent = f"{program}/{__version__}"
    # The library's session reads up to 4 MiB at once from a connection: for 10 ms no admission would run. It also takes
    # the proxy of the environment in its own way, and a password of ~/.netrc.
    session = client.rest_client.pool_manager
    client.rest_client.pool_manager = aiohttp.ClientSession(connector=session.connector, read_bufsize=_PIECE_BYTES)
    session.detach()
    return client


def set_keepalive(response: aiohttp.ClientResponse) -> None:
    """Set TCP keepalive on the connection of a response: a dead peer is noticed after 25 s."""
    transport = response.connection.transport if response.connection else None
    live = transport.get_extra_info("socket") if transport else None
    if live is None:
        return
    with socket.socket(fileno=os.dup(live.fileno())) as same:  # uvloop's socket object has no setsockopt
        for name, level, value in _KEEPALIVE:
            if hasattr(socket, name):
                same.setsockopt(level, getattr(socket, name), value)


def close_at_once(response: aiohttp.ClientResponse) -> None:
    """Close a response whose end has not come, and its connection at once.

    A graceful end of TLS waits for the peer. A command that ends meanwhile would leave the connection open.
    """
    transport = response.connection.transport if response.connection else None
    response.close()
    if transport:
        transport.abort()


class ApiError(Exception):
    """No answer: the API server could not be reached, or its answer broke off. `silent`: no byte came in time."""

    def __init__(self, sentence: str, *, silent: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent


def request_error(error: Exception) -> str:
    """Return why a request failed, in words without anything secret."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"can't connect in {CONNECT_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the API server's certificate is not trusted: {one_line(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"no TLS with {error.host}:{error.port}: {one_line(error.os_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0  # asyncio's own words repeat the address; a resolver's number is negative
        why = os.strerror(number) if number > 0 else one_line(error.os_error.strerror or error.os_error)
        return f"can't connect to {error.host}:{error.port}: {why}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the API server's answer broke off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the API server closed the connection"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status}"
    if isinstance(error, ConfigException):
        return config_problem(error)
    return f"the connection failed ({type(error).__name__})"
