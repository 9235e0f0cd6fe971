"""An API server that accepts one bearer token."""

from __future__ import annotations

import ssl

import trustme
from support.fakes.api_server import Cluster
from support.fakes.http_line import Asked, Line
from support.fakes.live import SHARE_MANAGERS, share_manager_on
from support.models.model_api import refusal

SHARE_MANAGER = share_manager_on("a", "n1")
ITEM = f"{SHARE_MANAGERS}/a"


class Doorman:
    """A handler that answers requests with the token, and refuses all others with 401."""

    def __init__(self, then: Cluster, token: str) -> None:
        self.then = then
        self.token = token

    async def __call__(self, asked: Asked, line: Line) -> None:
        """Answer a request by its token."""
        if asked.headers.get("authorization") == f"Bearer {self.token}":
            await self.then(asked, line)
        else:
            await line.answer(*refusal(401, "Unauthorized"))


def tls_of(authority: trustme.CA) -> ssl.SSLContext:
    """Return the SSL context of a server with a certificate of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context
