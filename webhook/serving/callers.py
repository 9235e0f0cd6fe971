"""Who may call: only callers with a certificate in a name, where that is asked for.

That the certificate is one of the right authority, and valid, was found in the handshake (tls); here is its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from webhook.serving.routes import Handler, refuse, shown


def only(name: str, handler: Handler) -> Handler:
    """`handler` for callers of this name, and 403 for all others."""

    async def handle(request: web.BaseRequest) -> web.Response:
        transport = request.transport
        names = _names(transport.get_extra_info("peercert") or {}) if transport else []
        if name in names:
            return await handler(request)
        got = shown(", ".join(names)) or "one without a name"
        return refuse(403, f"got the client certificate of {got}, expected that of {name}")

    return handle


def _names(peercert: Mapping[str, Any]) -> list[str]:
    """Common names, by which Kubernetes knows users, and DNS names, in the form that `ssl` gives a certificate in."""
    subject = [value for rdn in peercert.get("subject", ()) for key, value in rdn if key == "commonName"]
    return subject + [value for key, value in peercert.get("subjectAltName", ()) if key == "DNS"]
