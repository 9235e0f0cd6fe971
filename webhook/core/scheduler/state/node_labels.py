"""NodeLabels: columns of the values that all nodes have of a few labels. A node with KubeVirt has 200 labels.

To read one label of 5,000 nodes takes 4 ms, nearly all of it waiting for memory; to read a column takes a tenth of
that. The columns that were read last are stored. Each change of a node changes them.
Invariant: a column has the values of the nodes that were put in and not dropped since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.node import Node
from webhook.core.scheduler.budget import Budget

_COLUMNS_MAX: Final = 16  # 0.3 MiB each in a cluster of 5,000 nodes
COLUMN_STEPS: Final = 12  # for each node of a new column: 0.8 to 1 us
_KEY_STEPS: Final = 2  # for each label more
_NODES_AT_ONCE: Final = 20


class _Column(Struct):
    """The value of a label by node, or the values of several; `todo` are the nodes that are not in `values` yet."""

    keys: tuple[str, ...]
    todo: list[str]
    values: dict[str, Any] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)

    def put(self, name: str, labels: Mapping[str, str] | None) -> None:
        values = tuple(map((labels or {}).get, self.keys))
        if len(values) > 1:
            self.values[name] = self.shared.setdefault(values, values)
        elif values[0] is not None:
            self.values[name] = values[0]
        else:
            self.values.pop(name, None)


class NodeLabels:
    """Columns of labels. The cache of nodes calls `put` for a new or changed node, and `drop` for a deleted one."""

    def __init__(self, *, followed: Iterable[str] = (), charges: bool = True) -> None:
        """Create it without any node.

        Args:
            followed: labels that have a column from the beginning.
            charges: whether a new column takes steps of the budget; not if no event loop waits for it.
        """
        self._columns: dict[tuple[str, ...], _Column] = {(key,): _Column((key,), []) for key in followed}
        self._charges = charges

    def has(self, key: str) -> bool:
        """Whether there is a column of the label, or a part of one."""
        return (key,) in self._columns

    def of(self, key: str, nodes: Mapping[str, Node], budget: Budget) -> Mapping[str, str]:
        """Return the value of the label by node, for the nodes that have the label.

        Args:
            key: the label's key.
            nodes: all nodes by name.
            budget: pays for a new column; a stored column is free.

        Raises:
            OutOfSteps: there are too many nodes. What was read is stored, so that the next call gets further.
        """
        return self._column((key,), nodes, budget)

    def combinations(
        self, keys: tuple[str, ...], nodes: Mapping[str, Node], budget: Budget
    ) -> Mapping[str, str | tuple[str | None, ...] | None]:
        """Return an object by node that is equal for nodes with equal values of these labels; arguments as for `of`."""
        return self._column(keys, nodes, budget)

    def put(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Note that a node has these labels."""
        for column in self._columns.values():
            column.put(name, labels)

    def drop(self, name: str) -> None:
        """Note that a node was deleted."""
        for column in self._columns.values():
            column.values.pop(name, None)

    def _column(self, keys: tuple[str, ...], nodes: Mapping[str, Node], budget: Budget) -> dict[str, Any]:
        column = self._columns.pop(keys, None) or _Column(keys, list(nodes))
        self._columns[keys] = column
        if len(self._columns) > _COLUMNS_MAX:
            del self._columns[next(iter(self._columns))]
        while column.todo:
            some = column.todo[-_NODES_AT_ONCE:]
            if self._charges:
                budget.take((COLUMN_STEPS + _KEY_STEPS * (len(keys) - 1)) * len(some))
            for name in some:
                if name in nodes:
                    column.put(name, nodes[name].metadata.labels)
            del column.todo[-_NODES_AT_ONCE:]
        return column.values
