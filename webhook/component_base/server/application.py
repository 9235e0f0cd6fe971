"""An aiohttp application whose every error is one sentence: what was got, and what was expected.

A refusal whose body was not read ends its connection. No answer has a traceback.

A website can point its own name at the loopback address of a user's machine (DNS rebinding). The browser then sends
that name in the header Host. So callers of the loopback address may only use its own names.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web

SERVER: Final = "kubevirt-coschedule"
_SHOWN_CHARS: Final = 200
_LOCAL_NAME: Final = "localhost"


def application(
    *middlewares: Any, refused: Callable[[int], object] = lambda _: None, client_max_size: int = 0
) -> web.Application:
    """Return an application without routes. `refused` is called with the status of each refusal."""

    @web.middleware
    async def answer(request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            response: web.StreamResponse = await handler(request)
        except web.HTTPException as refusal:
            refused(refusal.status)
            # Not the exception itself: aiohttp would keep it, and with it the body, until the next garbage collection.
            response = web.Response(
                status=refusal.status, text=f"{_sentence(request, refusal)}\n", headers=refusal.headers
            )
            if not request.content.at_eof():
                response.force_close()
        response.headers["Server"] = SERVER
        return response

    return web.Application(middlewares=[answer, *middlewares], client_max_size=client_max_size)


def _sentence(request: web.Request, refusal: web.HTTPException) -> str:
    if isinstance(refusal, web.HTTPNotFound):
        paths = [resource.canonical for resource in request.app.router.resources()]
        return f"got path '{shown(request.path)}', expected {' or '.join(paths)}"
    if isinstance(refusal, web.HTTPMethodNotAllowed):
        return f"got {shown(refusal.method)}, expected {' or '.join(sorted(refusal.allowed_methods))}"
    return refusal.text or ""


def shown(text: str) -> str:
    """Return a caller's text for use in a sentence: at most 200 characters, printable, ASCII."""
    return ascii(text[:_SHOWN_CHARS])[1:-1]


def check_local(request: web.BaseRequest) -> None:
    """Let only callers of the loopback address pass, by one of its names.

    Raises:
        web.HTTPForbidden: the caller is another one.
    """
    address = _called_address(request)
    if not _is_loopback(address):
        text = f"got a connection to {address}, expected one to localhost: kubectl port-forward makes it"
        raise web.HTTPForbidden(text=text)
    check_host(request)


def check_host(request: web.BaseRequest) -> None:
    """Let callers of the loopback address pass by one of its names only, and all callers of another address.

    Raises:
        web.HTTPForbidden: the caller uses a foreign name.
    """
    if not _is_loopback(_called_address(request)):
        return
    try:
        host = urlsplit(f"//{request.host}").hostname or ""
    except ValueError:
        host = ""
    if host != _LOCAL_NAME and not _is_loopback(host):
        text = f"got the name {shown(request.host)}, expected localhost or 127.0.0.1 in the address"
        raise web.HTTPForbidden(text=text)


def _called_address(request: web.BaseRequest) -> str:
    return str(request.transport.get_extra_info("sockname")[0]) if request.transport else ""


def _is_loopback(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
