"""Reads the Events of `reunite` from a live cluster (webhook.core.observe.events)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.observe.events import Messages, ReuniteEvent, latest
from webhook.kube import reader
from webhook.kube.wire import Decoders

_FIELDS: Final = f"involvedObject.kind={VMI_KIND}"
_AGAIN_SECONDS: Final = 30.0  # `reunite` runs each ten minutes
_REFUSED_SECONDS: Final = 600.0  # the account may not list Events, because the component `reunite` is not installed


async def read_messages(api: Api, namespace: str) -> Messages | None:
    """Return the last message of `reunite` about each VM; None if the Events can't be read.

    `namespace` is empty for all namespaces.
    """
    within = f"{reader.within(namespace)}/" if namespace else ""
    try:
        events = await reader.get_all(api, f"/api/v1/{within}events", Decoders(ReuniteEvent), fields=_FIELDS)
    except ApiError:
        return None
    return latest(events)


class ReuniteMessages:
    """The last message of `reunite` about each VM, for a page: nothing is read while nobody asks."""

    def __init__(self, read: Callable[[], Awaitable[Messages | None]]) -> None:
        """`read` returns None if the Events can't be read."""
        self._read = read
        self._messages: Messages = {}
        self._next = 0.0
        self._reading: asyncio.Task[None] | None = None

    def __call__(self) -> Messages:
        """Return what the last read found. Start a new read if the last one is 30 s old or older. Never waits."""
        now = asyncio.get_running_loop().time()
        if self._reading is None and now >= self._next:
            self._reading = asyncio.create_task(self._refresh())
        return self._messages

    async def _refresh(self) -> None:
        try:
            messages = await self._read()
        finally:
            self._reading = None
        self._messages = messages or {}
        self._next = asyncio.get_running_loop().time() + (_REFUSED_SECONDS if messages is None else _AGAIN_SECONDS)
