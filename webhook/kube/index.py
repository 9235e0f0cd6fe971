"""Ways into a cache other than by an object's key. Each follows its cache, one object at a time.

Invariant: after any run of `put` and `drop` an index says what it would say had it been made from the objects that are
left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from webhook.core.scheduler.state.node_info import allocatable
from webhook.core.scheduler.topology.node_labels import NodeLabels

_TOPOLOGY_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")  # what nearly all pods' rules name


class Index(Protocol):
    """What a cache tells of its objects, and hands records to. None stands for the record of a key that had none."""

    def same(self, old: Any, new: Any) -> bool:
        """Whether a record says what the kept one says."""
        ...

    def put(self, key: str, old: Any, new: Any) -> Any:
        """The record of this key is `new`, and was `old`. Returns what the cache keeps; `old` where it is the same."""
        ...

    def drop(self, key: str, old: Any) -> None:
        """The key is gone; its record was `old`."""
        ...


class _Plain:
    """What is kept is the record itself."""

    def same(self, old: Any, new: Any) -> bool:
        """Whether they are equal."""
        return bool(old == new)


class Names(_Plain):
    """The keys of a cache as a sequence: any of them in one step, wherever it stands."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def put(self, key: str, old: Any, new: Any) -> Any:
        """A key that is there stays where it is."""
        if key not in self._places:
            self._places[key] = len(self.all)
            self.all.append(key)
        return old if old == new else new

    def drop(self, key: str, old: Any) -> None:  # noqa: ARG002 - an Index
        """The last one takes its place."""
        place, last = self._places.pop(key), self.all.pop()
        if last != key:
            self.all[place] = last
            self._places[last] = place


class Nodes(Names):
    """Nodes, what each has for pods, their labels, and how many of them are Ready and not cordoned."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = NodeLabels(followed=_TOPOLOGY_KEYS)
        self.has: dict[str, Mapping[str, int]] = {}
        self.usable = 0

    def put(self, key: str, old: Any, new: Any) -> Any:
        """As Names."""
        if old is None or old.status != new.status:
            self.has[key] = allocatable(new.status.allocatable if new.status else None)
        self.usable += new.usable - (old is not None and old.usable)
        if old is None or old.metadata.labels != new.metadata.labels:
            self.labels.put(key, new.metadata.labels)
        return super().put(key, old, new)

    def drop(self, key: str, old: Any) -> None:
        """As Names."""
        del self.has[key]
        self.usable -= old.usable
        self.labels.drop(key)
        super().drop(key, old)


class Groups(_Plain):
    """Keys by what their records are about. `of` is empty for what no record is about."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, ...]] = {}  # almost always of one: a set would cost four times as much

    def of(self, about: str) -> Sequence[str]:
        """The keys of the records that are about this."""
        return self._keys.get(about, ())

    def _about(self, key: str, record: Any) -> Iterable[str]:
        """What a record is about; each once."""
        raise NotImplementedError

    def put(self, key: str, old: Any, new: Any) -> Any:
        """Only what differs is touched."""
        if new == old:
            return old
        before = set() if old is None else set(self._about(key, old))
        after = set(self._about(key, new))
        for about in before - after:
            self._leave(about, key)
        for about in after - before:
            self._keys[about] = (*self._keys.get(about, ()), key)
        return new

    def drop(self, key: str, old: Any) -> None:
        """Out of every group."""
        for about in set(self._about(key, old)):
            self._leave(about, key)

    def _leave(self, about: str, key: str) -> None:
        left = tuple(each for each in self._keys[about] if each != key)
        if left:
            self._keys[about] = left
        else:
            del self._keys[about]


class ByHandle(Groups):
    """PersistentVolumes by their CSI volume handle, those left out that are called as it is: most are."""

    def _about(self, key: str, record: Any) -> Iterable[str]:
        return (record.handle,) if record.handle and record.handle != key and record.claim else ()


class ByClaim(Groups):
    """Pods by the claims that they use."""

    def _about(self, key: str, record: Any) -> Iterable[str]:  # noqa: ARG002 - of the protocol
        claims: tuple[str, ...] = record.claims
        return claims
