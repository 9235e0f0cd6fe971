"""The VirtualMachines and VirtualMachineInstances of one namespace, listed once into the form of the caches."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.core.virtual_machines import ListedVirtualMachines
from webhook.kube import reader
from webhook.kube.cache.caches import Caches
from webhook.kube.client.wire import Decoders

_KINDS = (Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE)


async def list_virtual_machines(api: Api, caches: Caches, namespace: str) -> tuple[ListedVirtualMachines, str]:
    """Return the VMs of a namespace, and why a kind could not be listed; empty if both were, or are not installed."""
    listed: list[dict[NamespacedName, Any] | None] = []
    problems: list[str] = []
    for kind in _KINDS:
        resource, found = replace(caches[kind].resource, namespace=namespace), dict[NamespacedName, Any]()
        try:
            items = await reader.get_all(api, resource.collection, Decoders(resource.wire))
        except ApiError as problem:
            listed.append(None)
            problems += [] if isinstance(problem, reader.Missing) else [str(problem)]
            continue
        for item in items:
            vm = resource.to_object(resource.key_of(item.metadata), resource.transform(item))
            found[NamespacedName(namespace, item.metadata.name)] = vm
        listed.append(found)
    return ListedVirtualMachines(*listed), next(iter(problems), "")
