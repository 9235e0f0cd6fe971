"""What `reunite` last said of each VM: the Events that it writes on VirtualMachineInstances (webhook.reunite.reporter).

An Event lives for an hour, and `reunite` repeats what still holds. So a VM without such an Event is one that `reunite`
does not look after, or `reunite` does not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from webhook.core.api.kubevirt import VMI_KIND
from webhook.core.observe.events import REUNITE_PREFIX
from webhook.kube import reader
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.client.metadata import BareMeta
from webhook.kube.client.wire import Decoders

_FIELDS: Final = f"involvedObject.kind={VMI_KIND}"


class _Object(Struct):
    namespace: str = ""
    name: str = ""


class _Event(Struct, rename="camel"):
    """v1.Event, as far as it is decoded."""

    metadata: BareMeta
    involved_object: _Object = field(default_factory=_Object)
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None


async def last_words(api: Api, namespace: str) -> Mapping[tuple[str, str], str]:
    """Return namespace and name of a VM -> what `reunite` last said of it; nothing if the Events can't be read.

    `namespace` is empty for all namespaces.
    """
    within = f"{reader.within(namespace)}/" if namespace else ""
    try:
        events = await reader.get_all(api, f"/api/v1/{within}events", Decoders(_Event), fields=_FIELDS)
    except ApiError:
        return {}
    return _latest(events)


def _latest(events: Iterable[_Event]) -> dict[tuple[str, str], str]:
    """Event names end with their time, so that they order the Events of one second."""
    said = (each for each in events if each.reason.startswith(REUNITE_PREFIX))
    ordered = sorted(said, key=lambda each: (each.last_timestamp or "", each.metadata.name))
    return {(each.involved_object.namespace, each.involved_object.name): each.message for each in ordered}
