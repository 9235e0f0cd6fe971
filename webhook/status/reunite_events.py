"""Reads the Events of `reunite` from a live cluster (webhook.core.observe.last_words)."""

from __future__ import annotations

from typing import Final

from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.observe.last_words import ReuniteEvent, Words, latest
from webhook.kube import reader
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.client.wire import Decoders

_FIELDS: Final = f"involvedObject.kind={VMI_KIND}"


async def last_words(api: Api, namespace: str) -> Words:
    """Return what `reunite` last said of each VM; nothing if the Events can't be read.

    `namespace` is empty for all namespaces.
    """
    within = f"{reader.within(namespace)}/" if namespace else ""
    try:
        events = await reader.get_all(api, f"/api/v1/{within}events", Decoders(ReuniteEvent), fields=_FIELDS)
    except ApiError:
        return {}
    return latest(events)
