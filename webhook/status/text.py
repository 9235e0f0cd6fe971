"""Rows of VMs as text for a terminal: a table as kubectl has it, a summary line, and changes as they come.

Names come from the cluster, so control characters are shown, never sent to the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from webhook.core.observe.vm_status import State, VMStatus, VMVolumeStatus

_GAP: Final = "   "  # kubectl's
_RESET: Final = "\x1b[0m"
_COLOR: Final = {
    State.TOGETHER: "\x1b[32m",
    State.APART: "\x1b[31m",
    State.STUCK: "\x1b[31m",
    State.PENDING: "\x1b[33m",
    State.UNKNOWN: "\x1b[33m",
}
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_STATE_WIDTH: Final = max(len(state) for state in State)
_DAY_SECONDS: Final = 86_400
_HOUR_SECONDS: Final = 3_600
_MINUTE_SECONDS: Final = 60
GONE: Final = "gone"


class Table:
    """How rows are shown: with which columns, and as of which time."""

    def __init__(self, *, wide: bool, namespaces: bool, color: bool) -> None:
        self._wide = wide
        self._namespaces = namespaces
        self._color = color

    def lines(self, rows: Sequence[VMStatus], now: str) -> list[str]:
        """A head, and a line for each row."""
        return self._joined([self._head(), *(self._cells(row, now) for row in rows)], [None, *(r.state for r in rows)])

    def _head(self) -> list[str]:
        return [
            *(["NAMESPACE"] if self._namespaces else []),
            "VM",
            "NODE",
            "SHARE-MANAGERS",
            "STATE",
            "SINCE",
            *(["POD", "ASKED", "DECIDED", "VOLUMES"] if self._wide else []),
            "WHY",
        ]

    def _cells(self, row: VMStatus, now: str) -> list[str]:
        settled = row.state is State.TOGETHER and not self._wide
        return [
            *([row.namespace] if self._namespaces else []),
            row.name,
            (row.node or "-") + (" (migrating)" if row.migrating else ""),
            _share_managers(row),
            row.state.value,
            (row.since or "-") if self._wide else age(row.since, now),
            *([row.pod, row.asked, row.decided.value, _volumes(row.volumes)] if self._wide else []),
            "-" if settled else f"{row.why.reason.code}: {row.why.sentence}",
        ]

    def _joined(self, rows: Sequence[Sequence[str]], states: Sequence[State | None]) -> list[str]:
        """Cells in columns; the state's is painted after it was measured."""
        shown = [[cell if cell.isprintable() else cell.translate(_CONTROL) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        place = 4 if self._namespaces else 3
        lines = []
        for row, state in zip(shown, states, strict=True):
            cells = [*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]
            if self._color and state in _COLOR:
                cells[place] = f"{_COLOR[state]}{cells[place]}{_RESET}"
            lines.append(_GAP.join(cells))
        return lines


def change(row: VMStatus, at: str) -> str:
    """One row that has changed, as a line of its own: no columns, for nobody knows how long the next one is."""
    line = (
        f"{at}  {row.state.value:{_STATE_WIDTH}}  {row.namespace}/{row.name} on {row.node or 'no node'} "
        f"({_share_managers(row)}): {row.why.reason.code}: {row.why.sentence}"
    )
    return line.translate(_CONTROL)


def gone(namespace: str, name: str, at: str) -> str:
    """The line of a VM that runs no more, or does not ask any more."""
    return f"{at}  {GONE:{_STATE_WIDTH}}  {namespace}/{name}".translate(_CONTROL)


def summary(counts: Mapping[State, int]) -> str:
    """How many VMs there are, and in which states."""
    total = sum(counts.values())
    if not total:
        return "no VM that runs asks for co-scheduling"
    told = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    return f"{total} VM{'s' if total > 1 else ''}: {told}"


def _share_managers(row: VMStatus) -> str:
    return ", ".join(f"{volume.claim}: {volume.node or '-'}" for volume in row.volumes) or "-"


def _volumes(volumes: Iterable[VMVolumeStatus]) -> str:
    told = (f"{volume.volume} ({volume.state or 'no ShareManager'})" for volume in volumes if volume.volume)
    return ", ".join(told) or "-"


@lru_cache
def age(since: str | None, now: str) -> str:
    """How long that has been, in at most two units."""
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


def cut(line: str, columns: int) -> str:
    """The line as far as a screen is wide; colours take no room."""
    shown, room, place = "", columns, 0
    while place < len(line) and room:
        end = line.find("m", place) + 1 if line[place] == "\x1b" else place + 1
        room -= line[place] != "\x1b"
        shown += line[place:end]
        place = end
    return shown + (_RESET if "\x1b" in shown and place < len(line) else "")
