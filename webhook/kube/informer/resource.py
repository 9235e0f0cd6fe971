"""Resource: where the API server has the objects of a kind, and which records and indexes a cache makes of them.

An index finds objects other than by their key, and follows its cache one object at a time. Invariant: after any series
of `put` and `drop` an index equals one that was made from the objects that are left.
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

    def same(self, old: Any, new: Any) -> bool:
        """Return whether a transformed object equals the stored record."""
        ...

    def put(self, key: str, old: Any, new: Any) -> Any:
        """Take in a transformed object. Return the record to store: `old` itself if both are the same."""
        ...

    def drop(self, key: str, old: Any) -> None:
        """Remove a key."""
        ...


class _RecordIndex:
    """An index that stores the transformed objects as they are."""

    def same(self, old: Any, new: Any) -> bool:
        """Return whether the records are equal."""
        return bool(old == new)


class KeyList(_RecordIndex):
    """The keys of a cache as a sequence in `keys`, so that any position can be read in one step."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._positions: dict[str, int] = {}

    def put(self, key: str, old: Any, new: Any) -> Any:
        """Append a new key. A known key stays at its position."""
        if key not in self._positions:
            self._positions[key] = len(self.keys)
            self.keys.append(key)
        return old if old == new else new

    def drop(self, key: str, old: Any) -> None:  # noqa: ARG002 - of the protocol
        """Remove a key. The last key takes its position."""
        position, last = self._positions.pop(key), self.keys.pop()
        if last != key:
            self.keys[position] = last
            self._positions[last] = position


class Indexer(_RecordIndex):
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
