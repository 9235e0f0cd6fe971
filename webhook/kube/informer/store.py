"""Resource, Index and Store: where the API server has the objects of a kind, and what a cache stores of them.

Invariants: a list in progress is not visible: `objects` changes by single events, or all at once when a list is whole.
After any series of `put` and `drop` an index equals one that was made from the objects that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from sys import intern
from typing import Any, Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.kube.wire import Large

_FEW: Final = 8  # keys: a tuple of 8 is copied as fast as a dict is changed, and takes a quarter of its memory

IndexFunc = Callable[[str, Any], Iterable[str]]
"""Cache key and record -> the values that an Indexer finds the record by (client-go's IndexFunc)."""


class Index(Protocol):
    """An index over the records of a cache. It also decides which record the cache stores.

    `old` is the stored record of a key, and None if the cache has no such key.
    """

    def put(self, key: str, old: Any, new: Any) -> Any:
        """Take in a transformed object. Return the record to store: `old` itself if both are equal."""
        ...

    def drop(self, key: str, old: Any) -> None:
        """Remove a key."""
        ...


class Indexer:
    """The keys of a cache by the values of an index function, as client-go's Indexer with one index."""

    def __init__(self, index_func: IndexFunc) -> None:
        self._index_func = index_func
        self._keys: dict[str, tuple[str, ...] | dict[str, None]] = {}  # nearly always one key: then a tuple

    def index_keys(self, value: str) -> Collection[str]:
        """Return the keys of the records that have this value; empty if there are none."""
        return self._keys.get(value, ())

    def put(self, key: str, old: Any, new: Any) -> Any:
        """Bring the key from the values of `old` to those of `new`. Return the record to store."""
        if new == old:
            return old
        before = set() if old is None else set(self._index_func(key, old))
        after = set(self._index_func(key, new))
        for value in before - after:
            self._remove(value, key)
        for value in after - before:
            self._add(value, key)
        return new

    def drop(self, key: str, old: Any) -> None:
        """Remove the key from each value of its record."""
        for value in set(self._index_func(key, old)):
            self._remove(value, key)

    def _add(self, value: str, key: str) -> None:
        keys = self._keys.get(value, ())
        if isinstance(keys, dict):
            keys[key] = None
        else:
            self._keys[value] = (*keys, key) if len(keys) < _FEW else dict.fromkeys((*keys, key))

    def _remove(self, value: str, key: str) -> None:
        keys = self._keys[value]
        if isinstance(keys, dict):
            del keys[key]
        else:
            keys = self._keys[value] = tuple(each for each in keys if each != key)
        if not keys:
            del self._keys[value]


class Resource(Struct, frozen=True, kw_only=True):
    """One kind at the API server.

    Attributes:
        title: resource and group, as kubectl names them.
        prefix: path of the API group and version.
        plural: the resource's name in paths.
        namespace: the only namespace that is read; empty for all namespaces, and for cluster-scoped kinds.
        namespaced: whether all namespaces are read, so that the cache key has the namespace.
        selector: label selector of list and watch; `fields`: their field selector.
        wire: the type that one object is decoded to; `large`: the one that a long object is decoded to before.
        transform: wire object -> what the cache stores: core's object, or the record of a pod.
        index: makes the index over what is stored; None for no index.
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
    namespace: str = ""
    namespaced: bool = False
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
        """Return the cache key of an object: NAMESPACE/NAME, or the name in a cache of one namespace or of none."""
        return namespaced_key(*key) if self.namespaced else key.name

    def key_of(self, meta: Any) -> str:
        """Return the cache key of the object with this metadata. Equal keys of several kinds are one string."""
        if self.namespaced:
            key = namespaced_key(meta.namespace or "", meta.name or "")
            # A claim's key is also in the records of pods. Nothing else refers to a pod by its key.
            return intern(key) if self.kind is Kind.PERSISTENT_VOLUME_CLAIM else key
        return intern(meta.name or "")


def namespaced_key(namespace: str, name: str) -> str:
    """Return NAMESPACE/NAME, the cache key in the caches of kinds that are read from all namespaces."""
    return f"{namespace}/{name}"


def _within(namespace: str) -> str:
    return f"namespaces/{quote(namespace, safe='')}" if namespace else ""


def _ignore(_: str, __: Any) -> None:
    """Take in nothing."""


class Store:
    """The records of one collection.

    Attributes:
        objects: cache key -> record.
        index: the index of the resource over `objects`; None if the resource has none.
        synced: whether a list was whole once. Until then `objects` is empty.
        listing: the records of the list in progress by cache key; None if no list is in progress.
        on_add: called with the key and record of each object that is new since the first list was whole, as client-go's
            OnAdd outside of the initial list. An object that a later list shows first is new, too.
        on_delete: called with the key and record of each object that is gone, as client-go's OnDelete.
        on_list: called when a list is whole, after `on_add` and `on_delete`.
    """

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.objects: dict[str, Any] = {}
        self.index: Any = resource.index() if resource.index else None
        self.synced = False
        self.listing: dict[str, Any] | None = None
        self.on_add: Callable[[str, Any], None] = _ignore
        self.on_delete: Callable[[str, Any], None] = _ignore
        self.on_list: Callable[[], None] = lambda: None
        self._changed: list[str] = []  # keys of the list in progress whose records differ from `objects`

    def get(self, key: NamespacedName) -> Any | None:
        """Return what is stored of the object of this key; None if there is nothing."""
        return self.objects.get(self.resource.key(key))

    def begin_list(self) -> None:
        """Begin a list. The index takes the objects of the first list at once, those of a later list at its end."""
        self.listing, self._changed = {}, []
        if not self.synced and self.resource.index:
            self.index = self.resource.index()

    def put(self, key: str, wire: Any) -> None:
        """Store the record of a wire object. If it equals the stored record, that one stays: a list copies nothing."""
        record = self.resource.transform(wire)
        if self.listing is None or not self.synced:
            objects = self.objects if self.listing is None else self.listing
            new = self.listing is None and key not in objects
            objects[key] = self.index.put(key, objects.get(key), record) if self.index else record
            if new:
                self.on_add(key, objects[key])
            return
        stored = self.objects.get(key)
        if stored == record:
            record = stored
        else:
            self._changed.append(key)
        self.listing[key] = record

    def drop(self, key: str) -> None:
        """Remove the record of this key, if there is one."""
        objects = self.objects if self.listing is None else self.listing
        if key in objects:
            old = objects.pop(key)
            if self.index and (self.listing is None or not self.synced):
                self.index.drop(key, old)
            if self.listing is None:
                self.on_delete(key, old)

    def complete_list(self) -> None:
        """Replace `objects` by the list in progress, which is whole."""
        assert self.listing is not None  # noqa: S101 - for the type checker: only a list is completed
        before, listing = self.objects, self.listing
        gone, changed = before.keys() - listing.keys(), [key for key in dict.fromkeys(self._changed) if key in listing]
        if self.index and self.synced:  # nearly all records are the same ones, and cost nothing here
            for key in gone:
                self.index.drop(key, before[key])
            for key in changed:
                listing[key] = self.index.put(key, before.get(key), listing[key])
        self.objects, self.listing, self._changed, self.synced = listing, None, [], True
        for key in changed:
            if key not in before:
                self.on_add(key, listing[key])
        for key in gone:
            self.on_delete(key, before[key])
        self.on_list()
