"""An aiohttp application whose every error is one sentence: what was got, and what was expected.

A refusal whose body was not read ends its connection. No answer has a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aiohttp import web

SERVER: Final = "kubevirt-coschedule"
_SHOWN_CHARS: Final = 200


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
