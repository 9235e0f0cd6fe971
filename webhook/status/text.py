"""Rows of VMs as text for a terminal: a table as in kubectl, and a summary.

Names come from the cluster, so control characters are shown as escapes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Final

from webhook.core.observe.vm_status import State, VMStatus
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import OptedInBy
from webhook.invocation import AS_STARTED, Invocation
from webhook.terminal import GREEN, RED, RESET, YELLOW, padded, printable

_GAP: Final = "   "  # as in kubectl
_COLOR: Final = {
    State.TOGETHER: GREEN,
    State.APART: RED,
    State.STUCK: RED,
    State.PENDING: YELLOW,
    State.UNKNOWN: YELLOW,
}
_DAY_SECONDS: Final = 86_400
_HOUR_SECONDS: Final = 3_600
_MINUTE_SECONDS: Final = 60
_COLORED: Final = re.compile(r"\x1b\[\d+m")
_REASON_CHARS: Final = 60  # a reason has at least this width beside the other columns, else it is below them
_INDENT_CHARS: Final = 4


class Table:
    """A table of rows.

    Args:
        wide: whether the table has more columns; the others stay as they are.
        namespaces: whether the table has the column NAMESPACE.
        color: whether the table has ANSI colors.
        head: whether the first line has the names of the columns.
        invocation: begins and ends the commands.
    """

    def __init__(
        self,
        *,
        wide: bool,
        namespaces: bool,
        color: bool,
        head: bool = True,
        invocation: Invocation = AS_STARTED,
    ) -> None:
        self._has_head = head
        self._invocation = invocation
        self._wide = wide
        self._namespaces = namespaces
        self._color = color

    def lines(self, rows: Sequence[VMStatus], now: str, columns: int | None = None) -> list[str]:
        """Return the head and a line for each row.

        Args:
            rows: the rows.
            now: the time from which ages count, as RFC 3339.
            columns: of a terminal, in which a long reason goes on in the next lines; None for lines of any length.
        """
        cells = [self._cells(row, now) for row in rows]
        states = [row.state for row in rows]
        heads = [self._head()] if self._has_head else []
        made = self._joined([*heads, *cells], [*(None for _ in heads), *states])
        if columns is None:
            return made
        lines = (self._fold(line, row, columns) for line, row in zip(made[len(heads) :], rows, strict=True))
        return [*made[: len(heads)], *chain.from_iterable(lines)]

    def _head(self) -> list[str]:
        return [
            *(["NAMESPACE"] if self._namespaces else []),
            "VM",
            "NODE",
            "SHARE-MANAGERS",
            "STATE",
            "SINCE",
            *(["SINCE-TIME", "POD", "ASKED", "DECIDED", "VOLUMES"] if self._wide else []),
            "WHY",
        ]

    def _cells(self, row: VMStatus, now: str) -> list[str]:
        return [
            *([row.namespace] if self._namespaces else []),
            row.name,
            (row.node or "-") + (" (migrating)" if row.migrating else ""),
            _share_managers(row),
            row.state.value,
            age(row.since, now),
            *(_wide_cells(row) if self._wide else []),
            self._reason(row),
        ]

    def _fold(self, line: str, row: VMStatus, columns: int) -> list[str]:
        """The line of a row; if it is too long, the reason in several lines beside or below the other columns."""
        width, reason = len(_COLORED.sub("", line)), printable(self._reason(row))
        if width <= columns or row.state is State.TOGETHER:
            return [line]
        place = width - len(reason)
        beside = columns - place >= _REASON_CHARS
        reported = self._wrapped(row, " " * (place if beside else _INDENT_CHARS), columns)
        others = line.removesuffix(reason)
        return [others + reported[0].lstrip(), *reported[1:]] if beside else [others.rstrip(), *reported]

    def _wrapped(self, row: VMStatus, indent: str, columns: int) -> list[str]:
        """The reason in lines. A command has a line of its own, whatever its length, so that it can be copied."""
        cure = row.cure
        to_do = [f"to do: {cure.sentence}" + (":" if cure.arguments else "")] if cure else []
        lines = [each for part in (str(row.why), *to_do) for each in _wrap(part, indent, columns)]
        if cure and cure.arguments:
            lines.append(printable(f"{indent}  {self._invocation.line(cure.arguments)}"))
        return lines + (_wrap(f"reunite: {row.said_by_reunite}", indent, columns) if row.said_by_reunite else [])

    def _reason(self, row: VMStatus) -> str:
        return "-" if row.state is State.TOGETHER else f"{_why(row, self._invocation)}{_said_by_reunite(row)}"

    def _joined(self, rows: Sequence[Sequence[str]], states: Sequence[State | None]) -> list[str]:
        """The cells in columns. The color of the state comes last, because it takes no space on the screen."""
        shown = padded([[printable(cell) for cell in row] for row in rows])
        place = 4 if self._namespaces else 3
        lines = []
        for cells, state in zip(shown, states, strict=True):
            if self._color and state in _COLOR:
                cells[place] = f"{_COLOR[state]}{cells[place]}{RESET}"
            lines.append(_GAP.join(cells))
        return lines


def _wrap(text: str, indent: str, columns: int) -> list[str]:
    room = columns - len(indent)
    words = textwrap.wrap(printable(text), room, break_long_words=False, break_on_hyphens=False)
    return [indent + line for line in words]


def _wide_cells(row: VMStatus) -> list[str]:
    asked = row.asked if row.by is OptedInBy.VM else f"{row.asked} ({row.by.name.lower()})"
    return [row.since or "-", row.pod, asked, row.decided.value, _volumes(row.volumes)]


def summary(counts: Mapping[State, int]) -> str:
    """Return how many VMs there are, and how many in each state; for at least one VM."""
    total = sum(counts.values())
    states = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    return f"{total} VM{'s' if total > 1 else ''}: {states}"


def _why(row: VMStatus, invocation: Invocation) -> str:
    """Return the reason; for a VM that is apart or stuck with what to do."""
    return f"{row.why}; to do: {invocation.to_do(row.cure)}" if row.cure else str(row.why)


def _said_by_reunite(row: VMStatus) -> str:
    return f"; reunite: {row.said_by_reunite}" if row.said_by_reunite else ""


def _share_managers(row: VMStatus) -> str:
    return ", ".join(f"{volume.claim}: {volume.node or '-'}" for volume in row.volumes) or "-"


def _volumes(volumes: Iterable[VMVolumeStatus]) -> str:
    volume_states = (f"{volume.volume} ({volume.state or 'no ShareManager'})" for volume in volumes if volume.volume)
    return ", ".join(volume_states) or "-"


@lru_cache
def age(since: str | None, now: str) -> str:
    """Return the time from `since` to `now` in at most two units; `-` for no time; `since` if it can't be parsed."""
    if not since:
        return "-"
    try:
        seconds = int((datetime.fromisoformat(now) - datetime.fromisoformat(since)) / timedelta(seconds=1))
    except (ValueError, TypeError):
        return since
    seconds = max(0, seconds)
    days, hours = divmod(seconds // _HOUR_SECONDS, 24)
    minutes = seconds // _MINUTE_SECONDS
    if seconds >= _DAY_SECONDS:
        return f"{days}d{hours}h" if hours else f"{days}d"
    if seconds >= _HOUR_SECONDS:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    return f"{minutes}m" if minutes else f"{seconds}s"
