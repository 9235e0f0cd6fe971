"""Domains: how many pods each value of a topology label has, for one topology spread constraint of a pod.

plugins/podtopologyspread/filtering.go, calPreFilterState: of pods on nodes that the constraint sees. They are counted
once for a pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from webhook.core.scheduler.state.pod_index import Found
from webhook.core.scheduler.topology.inclusion import Inclusion
from webhook.core.scheduler.topology.search import Search

_COUNT_STEPS: Final = 1
_VALUE_STEPS: Final = 1
_FEWEST: Final = 2  # of which one may be the candidate's own


class Domains(Struct, frozen=True):
    """What the constraint on one label has found.

    Attributes:
        there: value of the label -> how many pods.
        expected: the same, of those that are not bound yet.
        beside: how many are on nodes that are not known; `stranger` is one of these nodes.
        fewest: the two values with the fewest pods that are there, and how many; more do no harm.
        count: how many values there are.
    """

    there: Mapping[str, int]
    expected: Mapping[str, int]
    beside: int
    stranger: str | None
    fewest: Sequence[tuple[str, int]]
    count: int

    def at(self, value: str) -> int:
        """How many there are, or may be."""
        return self.there.get(value, 0) + self.expected.get(value, 0)


def domains(key: str, found: Found, inclusion: Inclusion, search: Search) -> Domains:
    """Count the pods that were found by their nodes' values of the label `key`.

    Raises:
        OutOfSteps: there are too many pods or nodes.
    """
    there, expected = (_counts(pods, key, inclusion, search) for pods in (found.there, found.expected))
    are_known = found.there.keys() | found.expected.keys() <= search.nodes.keys()
    strangers = [] if are_known else [each for each in (*found.there, *found.expected) if each not in search.nodes]
    empty = _empty(key, there, inclusion, search) if there or expected else set()
    search.budget.take(_COUNT_STEPS * len(there))
    return Domains(
        there=there,
        expected=expected,
        beside=sum(found.there[name] + found.expected[name] for name in strangers),
        stranger=strangers[0] if strangers else None,
        fewest=tuple(_fewest(empty, there)),
        count=len(there) + len(empty),
    )


def _counts(pods: Mapping[str, int], key: str, inclusion: Inclusion, search: Search) -> dict[str, int]:
    """Value of the label -> how many of these pods are on nodes that have it and are seen."""
    counts: dict[str, int] = {}
    if pods:
        values, names = search.values(key), inclusion.among(pods.keys())
        search.budget.take(_COUNT_STEPS * len(names))
        for name in names:
            value = values[name]
            counts[value] = counts.get(value, 0) + pods[name]
    return counts


def _empty(key: str, there: Mapping[str, int], inclusion: Inclusion, search: Search) -> set[str]:
    """The values that no pod has, of nodes that are seen."""
    values = search.values(key)
    search.budget.take(_VALUE_STEPS * len(values))
    others = set(values.values()) - there.keys()
    if not others:
        return set()
    return {values[name] for name in inclusion.among([name for name, value in values.items() if value in others])}


def _fewest(empty: Collection[str], there: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The two values with the fewest pods."""
    yield from ((value, 0) for value in islice(empty, _FEWEST))
    if len(empty) < _FEWEST and there:
        first = min(there, key=there.__getitem__)
        yield first, there[first]
        second = min((value for value in there if value != first), key=there.__getitem__, default=None)
        if second is not None:
            yield second, there[second]
