"""Resource: where the API server has the objects of a kind, and which records a cache makes of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from sys import intern
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.kube.client.wire import Large
from webhook.kube.informer.index import Index


def _name(name: str) -> str:
    return name


class Resource(Struct, frozen=True, kw_only=True):
    """One kind at the API server.

    Attributes:
        title: resource and group, as kubectl names them.
        prefix: path of the API group and version.
        plural: the resource's name in paths.
        namespace: the only namespace that is read; empty for all namespaces, and for cluster-scoped kinds.
        namespaced: whether all namespaces are read, so that the cache key has the namespace.
        name_key: object name -> cache key, for kinds whose cache key has no namespace.
        selector: label selector of list and watch; `fields`: their field selector.
        wire: the type that one object is decoded to; `large`: the one that a long object is decoded to before.
        transform: wire object -> record.
        to_object: cache key and record -> core's object.
        index: makes the index over the records; None for no index.
        watched: False for a kind that is never cached, but read each time.
        page_objects: how many objects a page of a list has. Decoding a page takes a few ms, which delays admissions.
    """

    kind: StrEnum
    title: str
    prefix: str
    plural: str
    wire: type[Any]
    large: type[Large] | None = None
    transform: Callable[[Any], Any]
    to_object: Callable[[Any, Any], Any]
    namespace: str = ""
    namespaced: bool = False
    name_key: Callable[[str], str] = _name
    selector: str = ""
    fields: str = ""
    page_objects: int = 500  # as client-go
    index: Callable[..., Index] | None = None
    watched: bool = True

    @property
    def collection(self) -> str:
        """The path of list and watch."""
        return "/".join(filter(None, (self.prefix, _within(self.namespace), self.plural)))

    def item(self, key: NamespacedName) -> str:
        """Return the path of one object."""
        within = _within(self.namespace or key.namespace)
        return "/".join(filter(None, (self.prefix, within, self.plural, quote(key.name, safe=""))))

    def key(self, key: NamespacedName) -> str:
        """Return the cache key of an object: NAMESPACE/NAME, or what `name_key` makes of the name."""
        return namespaced_key(*key) if self.namespaced else self.name_key(key.name)

    def key_of(self, meta: Any) -> str:
        """Return the cache key of the object with this metadata. Equal keys of several kinds are one string."""
        if self.namespaced:
            key = namespaced_key(meta.namespace, meta.name)
            # A claim's key is also in the records of pods and volumes. Nothing else refers to a pod by its key.
            return intern(key) if self.kind is Kind.PERSISTENT_VOLUME_CLAIM else key
        return intern(self.name_key(meta.name))


def namespaced_key(namespace: str, name: str) -> str:
    """Return NAMESPACE/NAME, the cache key in the caches of kinds that are read from all namespaces."""
    return f"{namespace}/{name}"


def _within(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}" if namespace else ""
