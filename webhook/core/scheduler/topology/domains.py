"""Domains: how many pods each value of a topology label has, for one topology spread constraint of a pod.

Upstream: plugins/podtopologyspread/filtering.go, calPreFilterState. Pods count on nodes that the constraint counts.
They are counted once for the incoming pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct

from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.topology.node_inclusion import NodeInclusion
from webhook.core.scheduler.topology.topology_lookup import TopologyLookup

_COUNT_STEPS: Final = 1
_VALUE_STEPS: Final = 1
_FEWEST: Final = 2  # one of them can be the value of the node that is evaluated


class Domains(Struct, frozen=True):
    """What one constraint counts.

    Attributes:
        running: the number of bound pods by value of the label; pods that are being deleted do not count.
        expected: the number of pods that are not bound yet, by value of the label.
        on_unlisted: the number of pods on nodes that the snapshot does not have; `unlisted` is one of these nodes.
        fewest: the values with the fewest of those pods, each with the number; two values, or all if there are fewer.
        count: the number of values.
    """

    running: Mapping[str, int]
    expected: Mapping[str, int]
    on_unlisted: int
    unlisted: str | None
    fewest: Sequence[tuple[str, int]]
    count: int

    def at(self, value: str) -> int:
        """Return the number of pods, bound and expected, at a value of the label."""
        return self.running.get(value, 0) + self.expected.get(value, 0)


def count_domains(key: str, found: Found, inclusion: NodeInclusion, lookup: TopologyLookup) -> Domains:
    """Count the pods that were found, by their nodes' values of the label `key`.

    Raises:
        OutOfSteps: there are too many pods or nodes.
    """
    running, expected = (_counts(pods, key, inclusion, lookup) for pods in (found.running, found.expected))
    are_listed = found.running.keys() | found.expected.keys() <= lookup.nodes.keys()
    unlisted = [] if are_listed else [each for each in (*found.running, *found.expected) if each not in lookup.nodes]
    empty = _empty(key, running, inclusion, lookup) if running or expected else set()
    lookup.budget.take(_COUNT_STEPS * len(running))
    return Domains(
        running=running,
        expected=expected,
        on_unlisted=sum(found.running[name] + found.expected[name] for name in unlisted),
        unlisted=unlisted[0] if unlisted else None,
        fewest=tuple(_fewest(empty, running)),
        count=len(running) + len(empty),
    )


def _counts(pods: Mapping[str, int], key: str, inclusion: NodeInclusion, lookup: TopologyLookup) -> dict[str, int]:
    """Return the number of these pods by value of the label, on nodes that have the label and are counted."""
    counts: dict[str, int] = {}
    if pods:
        values, names = lookup.values(key), inclusion.among(pods.keys())
        lookup.budget.take(_COUNT_STEPS * len(names))
        for name in names:
            value = values[name]
            counts[value] = counts.get(value, 0) + pods[name]
    return counts


def _empty(key: str, running: Mapping[str, int], inclusion: NodeInclusion, lookup: TopologyLookup) -> set[str]:
    """Return the values of counted nodes that no pod has."""
    values = lookup.values(key)
    lookup.budget.take(_VALUE_STEPS * len(values))
    others = set(values.values()) - running.keys()
    if not others:
        return set()
    return {values[name] for name in inclusion.among([name for name, value in values.items() if value in others])}


def _fewest(empty: Collection[str], running: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Return the two values with the fewest pods."""
    yield from ((value, 0) for value in islice(empty, _FEWEST))
    if len(empty) < _FEWEST and running:
        first = min(running, key=running.__getitem__)
        yield first, running[first]
        second = min((value for value in running if value != first), key=running.__getitem__, default=None)
        if second is not None:
            yield second, running[second]
