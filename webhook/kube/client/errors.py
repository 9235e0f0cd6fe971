"""ApiError: why a call to the API server gave no answer."""

from __future__ import annotations

from typing import Final

import aiohttp

from webhook.component_base import api_client

CONNECT_SECONDS: Final = 10.0


class ApiError(Exception):
    """The API server could not be reached, or its answer broke off. `silent`: nothing came for too long."""

    def __init__(self, sentence: str, *, silent: bool = False) -> None:
        super().__init__(sentence)
        self.silent = silent


def _sentence(error: Exception) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"can't connect in {CONNECT_SECONDS:g} s"
    return api_client.sentence(error)
