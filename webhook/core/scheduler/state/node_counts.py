"""NodeCounts: a number by node, in little memory if the numbers are small: a cluster has 100,000 of these.

One item is stored as the name of its node, a few as names of nodes, more as a dict from node to number. The functions
return the changed value; the caller stores it in place of the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

NodeCounts = str | tuple[str, ...] | dict[str, int]

_FEW: Final = 8  # a tuple of so many takes a third of what the smallest dict takes


def with_one_more(node_counts: NodeCounts | None, node: str) -> NodeCounts:
    """Return the counts with one more on this node; None stands for empty counts."""
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
    """Return the counts with one less on this node; None if nothing is left. The node must have one."""
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
    """Return the nodes; a node can be there several times."""
    return () if node_counts is None else (node_counts,) if isinstance(node_counts, str) else node_counts


def as_dict(node_counts: NodeCounts) -> dict[str, int]:
    """Return the number by node; `node_counts` itself if it is a dict."""
    return node_counts if isinstance(node_counts, dict) else dict(Counter(names(node_counts)))
