"""Collects a live cluster: each kind is read once, with the permissions of the user's kubeconfig.

Invariant: nothing is written to the cluster. A kind that could not be read has the API server's sentence, which names
the user and the missing permission.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from webhook.component_base.client.api import Api
from webhook.component_base.client.transport import ApiError
from webhook.component_base.options import Kubeconfig
from webhook.core.api.meta import utc_text
from webhook.kube import reader
from webhook.kube.reader import WITHOUT_KUBECONFIG, connect_for_terminal
from webhook.kube.wire import Decoders
from webhook.objects.kinds import APIResource
from webhook.objects.objects import BundleList, ClusterBundle, ObjectStore, Part

_LIST_SECONDS: Final = 120.0  # for one kind: 50,000 pods of 20 KB each are 1 GB
_AT_ONCE: Final = 8  # lists


def collect_at_terminal(
    kubeconfig: Kubeconfig,
    longhorn_namespace: str,
    parts: Callable[[str], Sequence[Part]],
    hint: str = WITHOUT_KUBECONFIG,
) -> ObjectStore:
    """Return the objects of these parts of a live cluster. `parts` takes the namespace of the kubeconfig's context.

    Raises:
        UserError: as `connect_for_terminal`.
    """
    with connect_for_terminal(kubeconfig, hint) as (runner, api, origin):
        return runner.run(collect_objects(api, origin, parts(api.namespace or "default"), longhorn_namespace))


async def collect_objects(api: Api, origin: str, parts: Sequence[Part], longhorn_namespace: str) -> ObjectStore:
    """Return the objects of these parts.

    Args:
        api: the API server.
        origin: its name for the user.
        parts: what is read.
        longhorn_namespace: the namespace of Longhorn's kinds.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(part: Part) -> tuple[BundleList, list[Any]]:
        async with slots:
            return await read_part(api, part, longhorn_namespace)

    found = await asyncio.gather(*map(read, parts))
    made = ClusterBundle(
        cluster=origin,
        at=utc_text(time.time()),
        namespace=api.namespace or "default",
        longhorn_namespace=longhorn_namespace,
        lists=[record for record, _ in found],
    )
    objects = ObjectStore(made)
    for part, (_, items) in zip(parts, found, strict=True):
        for item in items:
            objects.add(part.kind, item)
    return objects


async def read_part(api: Api, part: Part, longhorn_namespace: str) -> tuple[BundleList, list[Any]]:
    """Return the objects of one part, and the record that says why they are lacking."""
    kind = part.kind
    problem, items = "", list[Any]()
    try:
        namespace = longhorn_namespace if kind.of_longhorn else part.namespace
        path = kind.path(reader.within(namespace) if namespace and kind.namespaced else "", part.name)
        items = await (_get(api, path, kind) if part.name else _list(api, path, kind))
    except reader.Missing:
        pass
    except ApiError as error:
        problem = str(error)
    return BundleList(resource=kind.title, objects=len(items), problem=problem), items


async def _list(api: Api, path: str, kind: APIResource[Any]) -> list[Any]:
    decoders = Decoders(kind.type)
    return await reader.get_all(api, path, decoders, selector=kind.selector, fields=kind.fields, seconds=_LIST_SECONDS)


async def _get(api: Api, path: str, kind: APIResource[Any]) -> list[Any]:
    try:
        return [msgspec.convert(await reader.get(api, path), kind.type)]
    except msgspec.ValidationError as error:
        raise ApiError(f"{path}: got an object that can't be read: {error}") from None
