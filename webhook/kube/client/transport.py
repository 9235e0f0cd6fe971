"""The HTTP connection to an API server."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Final

import aiohttp
from kubernetes_asyncio.client.api_client import ApiClient
from kubernetes_asyncio.client.configuration import Configuration

from webhook import __version__
from webhook.component_base import api_client

_PIECE_BYTES: Final = 64 * 1024  # of a stream, between two looks at what else there is to do
_KEEPALIVE: Final = (  # a peer that is gone without a word is noticed after 10 s + 3 x 5 s
    ("SO_KEEPALIVE", socket.SOL_SOCKET, 1),
    ("TCP_KEEPIDLE", socket.IPPROTO_TCP, 10),
    ("TCP_KEEPINTVL", socket.IPPROTO_TCP, 5),
    ("TCP_KEEPCNT", socket.IPPROTO_TCP, 3),
    ("TCP_USER_TIMEOUT", socket.IPPROTO_TCP, 25_000),
)


class Stream:
    """An answer that is being read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.retry_after = response.headers.get("Retry-After")
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces small enough to be worked on at once."""
        while piece := await self._response.content.read(_PIECE_BYTES):
            yield piece
            await asyncio.sleep(0)  # what is there already is read without a wait, and calls want an answer meanwhile


def _client(configuration: Configuration) -> ApiClient:
    client = api_client.open_client(configuration, f"kubevirt-coschedule/{__version__}")
    # Its session reads up to 4 MiB ahead on each connection, all in one go: 10 ms in which nothing else is done.
    session = client.rest_client.pool_manager
    client.rest_client.pool_manager = aiohttp.ClientSession(
        connector=session.connector, trust_env=session.trust_env, read_bufsize=_PIECE_BYTES
    )
    session.detach()
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
