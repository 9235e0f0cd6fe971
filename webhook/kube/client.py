"""The way to an API server: kubernetes-asyncio's configuration, credentials and transport, with bounded reads.

Its typed models are not used: a stream is read as it comes, and a status is checked by whoever asked. Invariant:
whatever goes wrong on the way is a Trouble; nothing secret is in its words.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes_asyncio import config
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config.config_exception import ConfigException
from kubernetes_asyncio.config.incluster_config import SERVICE_TOKEN_FILENAME
from msgspec import Struct
from yaml import YAMLError

from webhook import __version__
from webhook.errors import UserError

CONNECT_SECONDS: Final = 10.0
_OBJECT_MAX_BYTES: Final = 8 * 1024 * 1024  # etcd takes 1.5 MiB
_RENEW_AT_MOST_EVERY_SECONDS: Final = 1.0
_PIECE_BYTES: Final = 64 * 1024  # of a stream, between two looks at what else there is to do
_KEEPALIVE: Final = (  # a peer that is gone without a word is noticed after 10 s + 3 x 5 s
    ("SO_KEEPALIVE", socket.SOL_SOCKET, 1),
    ("TCP_KEEPIDLE", socket.IPPROTO_TCP, 10),
    ("TCP_KEEPINTVL", socket.IPPROTO_TCP, 5),
    ("TCP_KEEPCNT", socket.IPPROTO_TCP, 3),
    ("TCP_USER_TIMEOUT", socket.IPPROTO_TCP, 25_000),
)


class BadKubeconfig(UserError):
    """No way to an API server: the kubeconfig or the service account can't be used."""


class Trouble(Exception):
    """The API server could not be reached, or its answer broke off. `silent`: nothing came for too long."""

    def __init__(self, sentence: str, *, silent: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent


class Target(Struct, frozen=True, kw_only=True):
    """Which API server, as whom: a kubeconfig and a context of it; None for both is what kubectl would take."""

    kubeconfig: Path | None = None
    context: str | None = None


class Reply(Struct, frozen=True):
    """An answer that was read whole."""

    status: int
    body: bytes


class Stream:
    """An answer that is being read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces small enough to be worked on at once."""
        async for chunk in self._response.content.iter_any():
            for start in range(0, len(chunk), _PIECE_BYTES):
                yield chunk[start : start + _PIECE_BYTES]
                if start + _PIECE_BYTES < len(chunk):
                    await asyncio.sleep(0)


class Api:
    """One API server. `host` is its URL; `namespace` the context's, None where it names none."""

    def __init__(self, target: Target, client: ApiClient, namespace: str | None) -> None:
        self.namespace = namespace
        self._target = target
        self._client = client
        self._renewed_at = 0.0
        self._renewing = asyncio.Lock()

    @classmethod
    async def connect(cls, target: Target) -> Api:
        """Find the API server and the credentials for it; nothing is sent yet.

        Raises:
            BadKubeconfig: there is none that can be used.
        """
        configuration, namespace = await _configure(target)
        return cls(target, _client(configuration), namespace)

    @property
    def host(self) -> str:
        """The API server's URL."""
        return str(self._client.configuration.host)

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    @asynccontextmanager
    async def stream(
        self, path: str, query: Sequence[tuple[str, str]], *, silence_seconds: float
    ) -> AsyncIterator[Stream]:
        """GET, to be read piece by piece. The status is for the caller to check.

        Raises:
            Trouble: no connection, a broken one, or `silence_seconds` without a byte.
        """
        limits = aiohttp.ClientTimeout(
            total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds
        )
        try:
            response = await self._get(path, query, limits)
            try:
                _keep_alive(response)
                yield Stream(response)
            finally:
                response.close()  # not released to the pool: more may be on its way
        except aiohttp.SocketTimeoutError as error:
            raise Trouble(f"nothing came for {silence_seconds:g} s", silent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            await self._mend(error)
            raise Trouble(_sentence(error)) from error

    async def get(self, path: str, query: Sequence[tuple[str, str]] = (), *, seconds: float) -> Reply:
        """GET one object, whole. An expired credential is renewed once.

        Raises:
            Trouble: no answer in that time, or none that can be read.
        """
        try:
            async with asyncio.timeout(seconds):
                reply = await self._whole(path, query)
                if reply.status == 401 and await self.renew():  # noqa: PLR2004 - HTTP's own number
                    reply = await self._whole(path, query)
                return reply
        except TimeoutError as error:
            raise Trouble(f"no answer in {seconds:.3g} s", silent=True) from error
        except (aiohttp.ClientError, OSError) as error:
            await self._mend(error)
            raise Trouble(_sentence(error)) from error

    async def renew(self) -> bool:
        """Read the credentials again, as after a 401. Returns whether that was done, or just had been."""
        async with self._renewing:
            now = asyncio.get_running_loop().time()
            if now - self._renewed_at < _RENEW_AT_MOST_EVERY_SECONDS:
                return True
            self._renewed_at = now
            try:
                fresh, _ = await _configure(self._target)
            except BadKubeconfig:
                return False
            configuration = self._client.configuration
            configuration.api_key, configuration.refresh_api_key_hook = fresh.api_key, fresh.refresh_api_key_hook
            return True

    async def _mend(self, error: Exception) -> None:
        """After a failed handshake the certificates are read again: the cluster's authority may have been renewed."""
        if not isinstance(error, aiohttp.ClientSSLError):
            return
        with suppress(BadKubeconfig):
            configuration, _ = await _configure(self._target)
            old, self._client = self._client, _client(configuration)
            await old.close()

    async def _get(
        self, path: str, query: Sequence[tuple[str, str]], limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self._client.call_api(
            path,
            "GET",
            query_params=list(query),
            # The server would spend its time on compressing, and we ours on the reverse.
            header_params={"Accept": "application/json", "Accept-Encoding": "identity"},
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=limits,
        )
        return response

    async def _whole(self, path: str, query: Sequence[tuple[str, str]]) -> Reply:
        response = await self._get(path, query, aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS))
        async with response:
            body = await response.content.read(_OBJECT_MAX_BYTES)
            while not response.content.at_eof():
                more = await response.content.read(_OBJECT_MAX_BYTES)
                body += more
                if len(body) > _OBJECT_MAX_BYTES:
                    raise aiohttp.ClientPayloadError(f"an answer of more than {_OBJECT_MAX_BYTES} bytes")
            return Reply(response.status, body)


async def _configure(target: Target) -> tuple[Configuration, str | None]:
    """The configuration, and the context's namespace.

    A service account is taken where we run as a pod and nobody names a kubeconfig; otherwise kubectl's rules hold.
    """
    configuration = Configuration()
    named = target.kubeconfig or target.context or os.environ.get("KUBECONFIG")
    try:
        if not named and _is_pod():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            namespace = None
        else:
            namespace = await _load_kubeconfig(target, configuration)
    except (ConfigException, OSError, YAMLError, KeyError, TypeError, AttributeError, AssertionError) as error:
        where = target.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise BadKubeconfig(
            f"{where}: {_shown(error)}; expected a kubeconfig with a usable context (or a pod's service account)"
        ) from None
    # Go's clients do not ask for RFC 5280's finer points (VERIFY_X509_STRICT, on since Python 3.13), and many
    # clusters' certificates do not have them.
    configuration.disable_strict_ssl_verification = True
    return configuration, namespace


def _is_pod() -> bool:
    return "KUBERNETES_SERVICE_HOST" in os.environ and Path(SERVICE_TOKEN_FILENAME).exists()


async def _load_kubeconfig(target: Target, configuration: Configuration) -> str | None:
    if target.kubeconfig and not target.kubeconfig.is_file():
        raise ConfigException("no such file")
    loader = await config.load_kube_config(
        config_file=str(target.kubeconfig) if target.kubeconfig else None,
        context=target.context,
        client_configuration=configuration,
        persist_config=False,
    )
    context: dict[str, Any] = (loader.current_context or {}).get("context") or {}
    return context.get("namespace")


def _client(configuration: Configuration) -> ApiClient:
    try:
        client = ApiClient(configuration)
    except (ssl.SSLError, OSError) as error:
        raise BadKubeconfig(
            f"{configuration.ssl_ca_cert} or {configuration.cert_file}: {_shown(error)}; expected PEM certificates"
        ) from None
    client.user_agent = f"kubevirt-coschedule/{__version__}"
    return client


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    transport = response.connection.transport if response.connection else None
    live = transport.get_extra_info("socket") if transport else None
    if live is None:
        return
    with socket.socket(fileno=os.dup(live.fileno())) as same:  # uvloop's own socket object has no setsockopt
        for name, level, value in _KEEPALIVE:
            if hasattr(socket, name):
                same.setsockopt(level, getattr(socket, name), value)


def _sentence(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {_shown(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"can't connect to {error.host}:{error.port}: {error.os_error.strerror or _shown(error.os_error)}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"can't connect in {CONNECT_SECONDS:g} s"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    return _shown(error)


def _shown(error: object) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return ascii(text[:200])[1:-1]
