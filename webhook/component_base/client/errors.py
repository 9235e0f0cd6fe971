"""ApiError: why a call to the API server got no answer."""

from __future__ import annotations

from typing import Final

import aiohttp

from webhook.component_base.client import api_client

CONNECT_SECONDS: Final = 10.0


class ApiError(Exception):
    """No answer: the API server could not be reached, or its answer broke off. `silent`: no byte came in time."""

    def __init__(self, sentence: str, *, silent: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent


def request_error(error: Exception) -> str:
    """Return why a request failed, in words without anything secret."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"can't connect in {CONNECT_SECONDS:g} s"
    return api_client.sentence(error)
