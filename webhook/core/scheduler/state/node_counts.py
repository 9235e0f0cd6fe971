"""How many of something are on which nodes, in little memory where they are few: a cluster has 100,000 of these.

A Tally is the name of a node, for the one there is; names of nodes, one for each of a few; or node -> how many.
Whoever changes one puts what comes out in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

Tally = str | tuple[str, ...] | dict[str, int]

_FEW: Final = 8  # a tuple of so many takes a third of what the smallest dict takes


def with_one_more(tally: Tally | None, node: str) -> Tally:
    """The tally with one more on this node; None stands for an empty one."""
    if tally is None:
        return node
    if isinstance(tally, str):
        return (tally, node)
    if isinstance(tally, tuple):
        if len(tally) < _FEW:
            return (*tally, node)
        tally = as_dict(tally)
    tally[node] = tally.get(node, 0) + 1
    return tally


def with_one_less(tally: Tally, node: str) -> Tally | None:
    """The tally with one less on this node, which has some; None where nothing is left."""
    if isinstance(tally, str):
        return None
    if isinstance(tally, tuple):
        at = tally.index(node)
        rest = tally[:at] + tally[at + 1 :]
        return rest if len(rest) > 1 else rest[0]
    if tally[node] > 1:
        tally[node] -= 1
    else:
        del tally[node]
    return tally or None


def names(tally: Tally | None) -> Collection[str]:
    """The nodes; one may come several times."""
    return () if tally is None else (tally,) if isinstance(tally, str) else tally


def as_dict(tally: Tally) -> dict[str, int]:
    """Node -> how many; the tally itself where it is one."""
    return tally if isinstance(tally, dict) else dict(Counter(names(tally)))
