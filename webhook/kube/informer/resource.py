"""Resource: where the API server has a kind, and what becomes of its JSON."""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.kube.informer.index import Index


def _name(name: str) -> str:
    return name


class Resource(Struct, frozen=True, kw_only=True):
    """One kind at the API server.

    Attributes:
        title: resource and group, as kubectl names them.
        prefix: path of the API group and version.
        plural: the resource's name in paths.
        namespace: the only namespace it is read from; empty for all namespaces, or a kind that has none.
        namespaced: it is read from all namespaces, so that its key has the namespace.
        name_key: the key of an object in the cache by its name, where no namespace is in the key.
        selector: label selector of list and watch; `fields`: their field selector.
        wire: what one object decodes to.
        keep: wire object -> record.
        build: cache key, record -> core's object.
        index: makes what the cache also keeps of its objects; None for nothing.
        watched: False for what is never cached, but read anew each time.
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
    namespaced: bool = False
    name_key: Callable[[str], str] = _name
    selector: str = ""
    fields: str = ""
    page_objects: int = 500  # client-go's
    index: Callable[[], Index] | None = None
    watched: bool = True

    @property
    def collection(self) -> str:
        """Path of list and watch."""
        return "/".join(filter(None, (self.prefix, _within(self.namespace), self.plural)))

    def item(self, key: NamespacedName) -> str:
        """Path of one object."""
        within = _within(self.namespace or key.namespace)
        return "/".join(filter(None, (self.prefix, within, self.plural, quote(key.name, safe=""))))

    def key(self, key: NamespacedName) -> str:
        """What it is kept under: its name; NAMESPACE/NAME where it is in any; a share-manager's pod by its volume."""
        return namespaced_key(*key) if self.namespaced else self.name_key(key.name)

    def key_of(self, meta: Any) -> str:
        """`key` of the object that has this metadata: one string for all that have the same, as a volume's have."""
        if self.namespaced:
            key = namespaced_key(meta.namespace, meta.name)
            return intern(key) if self.kind is Kind.PERSISTENT_VOLUME_CLAIM else key  # nothing else is called as a pod
        return intern(self.name_key(meta.name))


def namespaced_key(namespace: str, name: str) -> str:
    """The key of an object of this namespace and name, in the cache of a kind that is read from all namespaces."""
    return f"{namespace}/{name}"


def _within(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}" if namespace else ""
