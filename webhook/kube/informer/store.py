"""Store: the records of one collection, the index over them, and the list that will replace them.

Invariant: a list in progress is not visible. `objects` changes by single events, or all at once when a list is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.core.api.meta import NamespacedName
from webhook.kube.informer.resource import Index, Resource


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
        self.index = resource.index() if resource.index else None
        self.synced = False
        self.listing: dict[str, Any] | None = None
        self.on_add: Callable[[str, Any], None] | None = None
        self.on_delete: Callable[[str, Any], None] | None = None
        self.on_list: Callable[[], None] | None = None
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
            new = self.on_add is not None and self.listing is None and key not in objects
            objects[key] = self.index.put(key, objects.get(key), record) if self.index else record
            if new:
                self._added(key, objects[key])
            return
        stored = self.objects.get(key)
        if (stored is not None and self.index.same(stored, record)) if self.index else stored == record:
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
                self._deleted(key, old)

    def complete_list(self) -> None:
        """Replace `objects` by the list in progress, which is whole."""
        assert self.listing is not None  # noqa: S101 - for the type checker: only a list is completed
        new = [key for key in dict.fromkeys(self._changed) if key in self.listing and key not in self.objects]
        gone = [] if self.on_delete is None else [each for each in self.objects.items() if each[0] not in self.listing]
        if self.index and self.synced:
            self._update(self.index, self.listing)
        self.objects, self.listing, self._changed, self.synced = self.listing, None, [], True
        for key in new:
            self._added(key, self.objects[key])
        for key, record in gone:
            self._deleted(key, record)
        if self.on_list is not None:
            self.on_list()

    def _added(self, key: str, record: Any) -> None:
        if self.on_add is not None:
            self.on_add(key, record)

    def _deleted(self, key: str, record: Any) -> None:
        if self.on_delete is not None:
            self.on_delete(key, record)

    def _update(self, index: Index, listing: dict[str, Any]) -> None:
        """Bring the index from `objects` to the list. Nearly all records are the same ones, and cost nothing here."""
        gone = self.objects.keys() - listing.keys()
        for key in gone:
            index.drop(key, self.objects[key])
        for key in dict.fromkeys(self._changed):
            if key in listing and listing[key] is not self.objects.get(key):
                listing[key] = index.put(key, self.objects.get(key), listing[key])
