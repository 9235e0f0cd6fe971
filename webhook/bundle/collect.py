"""Collected: what `bundle` writes into its file. Lists each kind once, and keeps the fields that the program reads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.bundle.kept import as_json
from webhook.bundle.kinds import KINDS, BundledKind
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.api.meta import utc_text
from webhook.kube import reader
from webhook.kube.client.api import Api
from webhook.kube.client.errors import ApiError
from webhook.kube.client.wire import Decoders
from webhook.kube.reader import connect_for_terminal
from webhook.objects import bundle
from webhook.objects.bundle import BundleList, ClusterBundle
from webhook.objects.documents import Document

_LIST_SECONDS: Final = 120.0  # for one kind: 50,000 pods of 20 KB each are 1 GB


class ListedObjects(Struct, frozen=True):
    """What was listed of one kind, as JSON, one object a line."""

    record: BundleList
    lines: Sequence[bytes] = ()


class Collected(Struct, frozen=True):
    """What was listed of a cluster, and the record that says where, when and how completely."""

    made: ClusterBundle
    listed: Sequence[ListedObjects]

    @property
    def header(self) -> bytes:
        """The record as a JSON object."""
        head: dict[str, Any] = {
            "apiVersion": bundle.BUNDLE_API_VERSION,
            "kind": bundle.BUNDLE_KIND,
            "metadata": {"name": "bundle"},
        }
        return msgspec.json.encode(head | msgspec.to_builtins(self.made))

    @property
    def lines(self) -> Iterator[bytes]:
        """Each object as JSON."""
        for each in self.listed:
            yield from each.lines

    def documents(self) -> Iterator[Document]:
        """The record and the objects, as if a file had been read."""
        yield Document(self.made.cluster, msgspec.json.decode(self.header))
        for line in self.lines:
            yield Document(self.made.cluster, msgspec.json.decode(line))


def collect_bundle(kubeconfig: Kubeconfig, longhorn_namespace: str) -> Collected:
    """Return what `bundle` writes of a live cluster.

    Raises:
        UserError: no cluster can be reached.
    """
    with connect_for_terminal(kubeconfig, hint="") as (runner, api, origin):
        listed: list[ListedObjects] = []
        runner.run(_list_all(api, longhorn_namespace, listed))
        made = ClusterBundle(
            cluster=origin,
            at=utc_text(time.time()),
            namespace=api.namespace or "default",
            longhorn_namespace=longhorn_namespace,
            lists=[each.record for each in listed],
        )
    return Collected(made, listed)


async def _list_all(api: Api, longhorn_namespace: str, listed: list[ListedObjects]) -> None:
    """One kind after the other: the API server has other work."""
    listed += [await _list(api, kind, longhorn_namespace) for kind in KINDS]


async def _list(api: Api, kind: BundledKind, longhorn_namespace: str) -> ListedObjects:
    type_ = kind.type
    record = BundleList(api_version=type_.api_version, kind=type_.kind, resource=type_.title)
    path = type_.path(reader.within(longhorn_namespace) if kind.longhorn else "", "")
    try:
        items = await reader.get_all(api, path, Decoders(kind.decoded), fields=kind.fields, seconds=_LIST_SECONDS)
    except ApiError as problem:
        return ListedObjects(replace(record, problem=str(problem)))
    stated = {"apiVersion": type_.api_version, "kind": type_.kind}
    objects = [stated | kept for item in items if (kept := as_json(item)) is not None]
    return ListedObjects(replace(record, objects=len(objects)), [msgspec.json.encode(each) for each in objects])
