"""Api: calls to one API server, with limits of time and size, over kubernetes-asyncio's configuration and transport.

The typed models of kubernetes-asyncio are not used. The caller checks the HTTP status and decodes the body. Invariant:
a call without an answer raises an ApiError, and the words of an ApiError contain no secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config.config_exception import ConfigException
from msgspec import Struct

from webhook import __version__
from webhook.component_base.client.config import load_kubeconfig, one_line, request_error
from webhook.component_base.client.transport import (
    CONNECT_SECONDS,
    PIECE_BYTES,
    ApiError,
    Failure,
    Stream,
    TooLong,
    close_at_once,
    read_failure,
    set_keepalive,
)
from webhook.component_base.options import BadKubeconfig, Context, Kubeconfig

_JSON: Final = "application/json"
_ANSWER_MAX_BYTES: Final = 16 * 1024 * 1024  # etcd takes 1.5 MiB, and JSON can have six bytes for one
_RENEW_AT_MOST_EVERY_SECONDS: Final = 1.0

# ConfigException: a token file that is being written
_FAILURES: Final = (aiohttp.ClientError, OSError, ConfigException)


class _Request(Struct, frozen=True):
    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: Mapping[str, Any] | None = None
    content_type: str = _JSON


class Reply(Struct, frozen=True):
    """A whole answer. `status` is the HTTP status."""

    status: int
    body: bytes

    @property
    def failure(self) -> Failure:
        """Why the API server refused, in its words: a 403 names the user and the permission."""
        return read_failure(self.body, self.status)


class Api:
    """One API server. `context` and `namespace` are those of the kubeconfig, or of the pod's service account."""

    def __init__(self, kubeconfig: Kubeconfig, client: ApiClient, context: Context, program: str) -> None:
        self.context, self.namespace, self.in_pod = context.name, context.namespace, context.in_pod
        self._kubeconfig, self._program = kubeconfig, program
        self._client = client
        self._trust = _trust(client.configuration)
        self._retired: list[ApiClient] = []
        self._renewed_at = 0.0
        self._renewing = asyncio.Lock()

    @classmethod
    async def connect(cls, kubeconfig: Kubeconfig, program: str = "kubevirt-coschedule") -> Api:
        """Find the API server and the credentials for it. This sends nothing. The API server's logs name `program`.

        Raises:
            BadKubeconfig: neither a kubeconfig nor a service account can be used.
        """
        configuration, context = await load_kubeconfig(kubeconfig)
        return cls(kubeconfig, _open_client(configuration, program), context, program)

    @property
    def host(self) -> str:
        """The API server's URL."""
        return str(self._client.configuration.host)

    async def close(self) -> None:
        """Close every connection."""
        for client in (self._client, *self._retired):
            await client.close()

    @asynccontextmanager
    async def stream(
        self, path: str, query: Sequence[tuple[str, str]], *, silence_seconds: float
    ) -> AsyncIterator[Stream]:
        """GET an answer that the caller reads piece by piece. The caller checks the status.

        Raises:
            ApiError: no connection, a broken one, or `silence_seconds` without a byte.
        """
        limits = aiohttp.ClientTimeout(
            total=None, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds
        )
        try:
            response = await self._call(_Request("GET", path, query), limits)
            try:
                set_keepalive(response)
                yield Stream(response)
            finally:
                close_at_once(response)  # not released to the pool: more bytes may follow
        except aiohttp.SocketTimeoutError as error:
            raise ApiError(f"nothing came for {silence_seconds:g} s", silent=True) from error
        except _FAILURES as error:
            await self._reload_after(error)
            raise ApiError(request_error(error)) from error

    async def get(self, path: str, query: Sequence[tuple[str, str]] = (), *, seconds: float) -> Reply:
        """GET one whole answer. If the credentials have expired, read them again and repeat the request once.

        Raises:
            ApiError: no answer within `seconds`, or a broken one.
        """
        return await self._send(_Request("GET", path, query), seconds)

    async def patch(
        self,
        path: str,
        change: Mapping[str, Any],
        query: Sequence[tuple[str, str]] = (),
        *,
        content_type: str,
        seconds: float,
    ) -> Reply:
        """PATCH an object, as `get`. After an ApiError the object may be changed or not."""
        return await self._send(_Request("PATCH", path, query, change, content_type), seconds)

    async def post(self, path: str, new: Mapping[str, Any], *, seconds: float) -> Reply:
        """POST a new object, as `get`. After an ApiError the object may exist or not."""
        return await self._send(_Request("POST", path, body=new), seconds)

    async def _send(self, request: _Request, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                reply = await self._whole(request)
                if reply.status == 401 and await self.renew():  # noqa: PLR2004 - HTTP's own number
                    reply = await self._whole(request)
                return reply
        except TimeoutError as error:
            raise ApiError(f"no answer in {seconds:.3g} s", silent=True) from error
        except _FAILURES as error:
            await self._reload_after(error)
            raise ApiError(request_error(error)) from error

    async def renew(self) -> bool:
        """Read the credentials again after a 401. Return whether that succeeded, or was done within the last second."""
        async with self._renewing:
            now = asyncio.get_running_loop().time()
            if now - self._renewed_at < _RENEW_AT_MOST_EVERY_SECONDS:
                return True
            self._renewed_at = now
            try:
                await self._reload()
            except BadKubeconfig:
                return False
            return True

    async def _reload_after(self, error: Exception) -> None:
        """Read the certificates again after a failed TLS handshake: the cluster's authority may have been renewed."""
        if isinstance(error, aiohttp.ClientSSLError):
            with suppress(BadKubeconfig):
                await self._reload()

    async def _reload(self) -> None:
        """Read tokens and certificates again. Requests that are under way go on with the old ones.

        Raises:
            BadKubeconfig: the files can't be read now.
        """
        fresh, _ = await load_kubeconfig(self._kubeconfig)
        trust = _trust(fresh)
        if trust == self._trust:
            configuration = self._client.configuration
            configuration.api_key, configuration.refresh_api_key_hook = fresh.api_key, fresh.refresh_api_key_hook
        else:
            client = _open_client(fresh, self._program)
            self._retired.append(self._client)  # its streams go on; certificates are renewed a few times a year
            self._client, self._trust = client, trust

    async def _call(self, request: _Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        # Without compression: it would cost the API server and the webhook more time than it saves.
        headers = {"Accept": _JSON, "Accept-Encoding": "identity", "Content-Type": request.content_type}
        response: aiohttp.ClientResponse = await self._client.call_api(
            request.path,
            request.method,
            query_params=list(request.query),
            body=request.body,
            header_params=headers,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=limits,
        )
        return response

    async def _whole(self, request: _Request) -> Reply:
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        response = await self._call(request, limits)
        async with response:
            pieces, size = [], 0
            while more := await response.content.read(_ANSWER_MAX_BYTES):
                pieces.append(more)
                size += len(more)
                if size > _ANSWER_MAX_BYTES:
                    raise TooLong(f"an answer of more than {_ANSWER_MAX_BYTES} bytes")
            return Reply(response.status, b"".join(pieces))


def _open_client(configuration: Configuration, program: str) -> ApiClient:
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
    client.rest_client.pool_manager = aiohttp.ClientSession(connector=session.connector, read_bufsize=PIECE_BYTES)
    session.detach()
    return client


def _trust(configuration: Configuration) -> tuple[bytes, ...]:
    """Return the content of the files of authority, certificate and key; empty for a file that is not set."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    try:
        return tuple(Path(file).read_bytes() if file else b"" for file in files)
    except OSError as error:
        raise BadKubeconfig(f"{error.filename}: {error.strerror}; expected PEM certificates") from None
