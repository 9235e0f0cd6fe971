"""All replicas that a search has met, each with a number.

Two replicas that always answer alike from now on have one picture, and one number. Invariant: `Replicas.after` returns
the same for the same replica and happening.
"""

from __future__ import annotations

from collections.abc import Hashable

from modelcheck import pods as model_pods
from modelcheck.happenings import Ask, Cluster, Happening, renumbered
from modelcheck.pods import NO_TERMS, Terms
from modelcheck.replica import Parts, Picture, Replica


class Replicas:
    """The replicas of one cluster, made of the same parts."""

    def __init__(self, cluster: Cluster, parts: Parts, *, stale_timers: bool) -> None:
        self._cluster, self._parts, self._stale = cluster, parts, stale_timers
        self._numbers: dict[Picture, int] = {}
        self._pictures: list[Picture] = []
        self._histories: list[tuple[Happening, ...]] = []
        self._after: dict[tuple[int, Happening], tuple[int, Terms]] = {}
        self._renumbered: dict[tuple[int, tuple[int, ...]], int] = {}
        self.fresh = self._number(Replica(cluster, parts).picture(stale=stale_timers), ())

    def __len__(self) -> int:
        return len(self._histories)

    def after(self, number: int, happening: Happening) -> tuple[int, Terms]:
        """Return the replica after the happening; and, if it was asked, what its answer writes."""
        found = self._after.get((number, happening))
        if found is None:
            history = (*self._histories[number], happening)
            replica, decision = Replica(self._cluster, self._parts), None
            for each in history:
                decision = replica.happens(each)
            terms = NO_TERMS
            if isinstance(happening, Ask) and decision is not None:
                terms = model_pods.patch(happening.shape, decision)
            found = self._after[number, happening] = self._number(replica.picture(stale=self._stale), history), terms
        return found

    def promises(self, number: int) -> Hashable:
        """Return what this replica counts."""
        return self._pictures[number].promises

    def timers(self, number: int) -> tuple[tuple[int, bool], ...]:
        """Return the answers of this replica whose time is not over: see `Replica.timers`."""
        return self._pictures[number].timers

    def renumbered(self, number: int, to: tuple[int, ...]) -> int:
        """Return the replica to which the same happened, if VM 0 had the number to[0], and so on."""
        found = self._renumbered.get((number, to))
        if found is None:
            history = tuple(renumbered(each, to) for each in self._histories[number])
            found = self._renumbered[number, to] = self._number(self._pictures[number].renumbered(to), history)
        return found

    def _number(self, picture: Picture, history: tuple[Happening, ...]) -> int:
        number = self._numbers.setdefault(picture, len(self._histories))
        if number == len(self._histories):
            self._histories.append(history)
            self._pictures.append(picture)
        return number
