"""How many of something are on which nodes, in little memory where they are few: a cluster has 100,000 of these.

A Tally is the name of a node, for the one there is; names of nodes, one for each of a few; or node -> how many.
Whoever changes one puts what comes out in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

NodeCounts = str | tuple[str, ...] | dict[str, int]

_FEW: Final = 8  # a tuple of so many takes a third of what the smallest dict takes


def with_one_more(node_counts: NodeCounts | None, node: str) -> NodeCounts:
    """The tally with one more on this node; None stands for an empty one."""
    if node_counts is None:
        return node
    if isinstance(node_counts, str):
        return (node_counts, node)
    if isinstance(node_counts, tuple):
        if len(node_counts) < _FEW:
            return (*node_counts, node)
        node_counts = as_dict(node_counts)
    node_counts[node] = node_counts.get(node, 0) + 1
    return node_counts


def with_one_less(node_counts: NodeCounts, node: str) -> NodeCounts | None:
    """The tally with one less on this node, which has some; None where nothing is left."""
    if isinstance(node_counts, str):
        return None
    if isinstance(node_counts, tuple):
        at = node_counts.index(node)
        rest = node_counts[:at] + node_counts[at + 1 :]
        return rest if len(rest) > 1 else rest[0]
    if node_counts[node] > 1:
        node_counts[node] -= 1
    else:
        del node_counts[node]
    return node_counts or None


def names(node_counts: NodeCounts | None) -> Collection[str]:
    """The nodes; one may come several times."""
    return () if node_counts is None else (node_counts,) if isinstance(node_counts, str) else node_counts


def as_dict(node_counts: NodeCounts) -> dict[str, int]:
    """Node -> how many; the tally itself where it is one."""
    return node_counts if isinstance(node_counts, dict) else dict(Counter(names(node_counts)))
