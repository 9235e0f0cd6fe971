"""NodeLabels: the values that all nodes have of a few labels, beside the nodes: a node of KubeVirt's has 200 labels.

To read one label of 5,000 nodes takes 4 ms, nearly all of it waiting for memory; of a column, a tenth of that. The
columns that were asked for last are kept, and follow their nodes one by one.
Invariant: a column says what the nodes say that were put in, and not dropped since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, field

from webhook.core.api.node import Node
from webhook.core.scheduler.budget import Budget

_COLUMNS_MAX: Final = 16  # 0.3 MiB each where there are 5,000 nodes
COLUMN_STEPS: Final = 12  # of a node: 0.8 to 1 us to have it at hand
_KEY_STEPS: Final = 2  # of each label more
_NODES_AT_ONCE: Final = 20


class _Column(Struct):
    """Node -> its value of a label, or its values of several; `todo` are the nodes that are not in it yet."""

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
    """Columns of labels. Whoever keeps nodes tells of each that is new, or has changed, or is gone."""

    def __init__(self, *, followed: Iterable[str] = (), charges: bool = True) -> None:
        """Without any node.

        Args:
            followed: labels of which there is a column from the beginning.
            charges: whether a column costs steps: not where no event loop waits for it.
        """
        self._columns: dict[tuple[str, ...], _Column] = {(key,): _Column((key,), []) for key in followed}
        self._charges = charges

    def has(self, key: str) -> bool:
        """Whether there is a column of a label, or a part of one."""
        return (key,) in self._columns

    def of(self, key: str, nodes: Mapping[str, Node], budget: Budget) -> Mapping[str, str]:
        """Node -> its value of a label, for those that have it.

        Args:
            nodes: all of them, by name.
            budget: what it may cost: nothing, where it was asked for lately.

        Raises:
            OutOfSteps: there are too many nodes. What was read is kept: whoever asks again gets further.
        """
        return self._column((key,), nodes, budget)

    def combinations(
        self, keys: tuple[str, ...], nodes: Mapping[str, Node], budget: Budget
    ) -> Mapping[str, str | tuple[str | None, ...] | None]:
        """Node -> what stands for its values of these labels: one for all nodes that have the same. As `of`."""
        return self._column(keys, nodes, budget)

    def put(self, name: str, labels: Mapping[str, str] | None) -> None:
        """A node has these labels."""
        for column in self._columns.values():
            column.put(name, labels)

    def drop(self, name: str) -> None:
        """A node is gone."""
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
