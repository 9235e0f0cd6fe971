"""Ways into a cache other than by an object's key. Each follows its cache, one object at a time.

Invariant: after any run of `put` and `drop` an index says what it would say had it been made from the objects that are
left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol


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


class Indexer(_Plain):
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
