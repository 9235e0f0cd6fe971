"""The kinds that core reads: where the API server has them, and what becomes of their JSON."""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from webhook.core.objects import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION, SHARE_MANAGER
from webhook.core.view import Key, Kind
from webhook.kube import records


class Resource(Struct, frozen=True, kw_only=True):
    """One kind at the API server.

    Attributes:
        title: resource and group, as kubectl names them.
        prefix: path of the API group and version.
        plural: the resource's name in paths.
        namespace: the only namespace it is read from; empty for all namespaces, or a kind that has none.
        selector: label selector of list and watch.
        wire: what one object decodes to.
        keep: wire object -> record.
        build: cache key, record -> core's object.
        page_objects: how many a page of a list has; decoding it takes a few ms, in which nothing else is done.
    """

    kind: Kind
    title: str
    prefix: str
    plural: str
    wire: type[Any]
    keep: Callable[[Any], Any]
    build: Callable[[Any, Any], Any]
    namespace: str = ""
    selector: str = ""
    page_objects: int = 500  # client-go's

    @property
    def collection(self) -> str:
        """Path of list and watch."""
        return "/".join(filter(None, (self.prefix, _within(self.namespace), self.plural)))

    def item(self, key: Key) -> str:
        """Path of one object."""
        within = _within(self.namespace or key.namespace)
        return "/".join(filter(None, (self.prefix, within, self.plural, quote(key.name, safe=""))))

    def key(self, key: Key) -> str:
        """What it is kept under: its name, but a claim by NAMESPACE/NAME, a share-manager's pod by its volume."""
        if self.kind is Kind.PERSISTENT_VOLUME_CLAIM:
            return f"{key.namespace}/{key.name}"
        return records.pod_key(key.name) if self.kind is Kind.SHARE_MANAGER_POD else key.name

    def key_of(self, meta: Any) -> str:
        """`key` of the object that has this metadata: one string for all that have the same, as a volume's have."""
        key = self.key(meta)
        return key if self.kind is Kind.PERSISTENT_VOLUME_CLAIM else intern(key)  # nothing else is called as a claim is


def resources(longhorn_namespace: str) -> tuple[Resource, ...]:
    """Every kind that core reads; Longhorn's own from its namespace."""
    longhorn = f"/apis/{LONGHORN_API_VERSION}"
    return (
        Resource(
            kind=Kind.PERSISTENT_VOLUME_CLAIM,
            title="persistentvolumeclaims",
            prefix="/api/v1",
            plural="persistentvolumeclaims",
            wire=records.WireClaim,
            keep=records.keep_claim,
            build=records.build_claim,
        ),
        Resource(
            kind=Kind.PERSISTENT_VOLUME,
            title="persistentvolumes",
            prefix="/api/v1",
            plural="persistentvolumes",
            wire=records.WireVolume,
            keep=records.keep_volume,
            build=records.build_volume,
        ),
        Resource(
            kind=Kind.NODE,
            title="nodes",
            prefix="/api/v1",
            plural="nodes",
            wire=records.WireNode,
            keep=records.keep_node,
            page_objects=50,  # 30 KB each, with their images and labels
            build=lambda _, node: node,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER,
            title="sharemanagers.longhorn.io",
            prefix=longhorn,
            plural="sharemanagers",
            namespace=longhorn_namespace,
            wire=records.WireShareManager,
            keep=records.keep_share_manager,
            build=records.build_share_manager,
        ),
        Resource(
            kind=Kind.LONGHORN_NODE,
            title="nodes.longhorn.io",
            prefix=longhorn,
            plural="nodes",
            namespace=longhorn_namespace,
            wire=records.WireLonghornNode,
            keep=records.keep_longhorn_node,
            build=records.build_longhorn_node,
        ),
        Resource(
            kind=Kind.SHARE_MANAGER_POD,
            title="share-manager pods",
            prefix="/api/v1",
            plural="pods",
            namespace=longhorn_namespace,
            selector=f"{LABEL_LONGHORN_COMPONENT}={SHARE_MANAGER}",
            wire=records.WirePod,
            keep=records.keep_pod,
            build=records.build_pod,
        ),
    )


def _within(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}" if namespace else ""
