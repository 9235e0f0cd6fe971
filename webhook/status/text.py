"""Rows of VMs as text for a terminal: a table as in kubectl, and a summary.

Names come from the cluster, so control characters are shown as escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from webhook.core.causes import short_cause
from webhook.core.observe.vm_status import State, VMStatus, count_causes, count_states
from webhook.core.observe.vm_volumes import VMVolumeStatus
from webhook.core.opt_in import OptedInBy
from webhook.invocation import AS_STARTED, Invocation
from webhook.terminal import GREEN, RED, RESET, YELLOW, padded, printable

_GAP: Final = "   "  # as in kubectl
_COLOR: Final = {
    State.TOGETHER: GREEN,
    State.APART: RED,
    State.STUCK: RED,
    State.NOT_RUNNING: RED,
    State.PENDING: YELLOW,
    State.UNKNOWN: YELLOW,
}
_DAY_SECONDS: Final = 86_400
_HOUR_SECONDS: Final = 3_600
_MINUTE_SECONDS: Final = 60


class Table:
    """A table of rows.

    Args:
        wide: whether the table has more columns, and all evidence in the last one.
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

    def lines(self, rows: Sequence[VMStatus], now: str) -> list[str]:
        """Return the head and a line for each row; ages count until `now`, as RFC 3339."""
        cells = [self._cells(row, now) for row in rows]
        heads = [self._head()] if self._has_head else []
        return self._joined([*heads, *cells], [*(None for _ in heads), *(row.state for row in rows)])

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

    def _reason(self, row: VMStatus) -> str:
        """The cause in a few words; in the wide table the evidence, what to do, and what `reunite` last said."""
        if row.state is State.TOGETHER:
            return "-"
        return f"{_why(row, self._invocation)}{_said_by_reunite(row)}" if self._wide else short_cause(row.why)

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


def _wide_cells(row: VMStatus) -> list[str]:
    asked = row.asked if row.by is OptedInBy.VM else f"{row.asked} ({row.by.name.lower()})"
    return [row.since or "-", row.pod, asked, row.decided.value, _volumes(row.volumes)]


def summary(rows: Sequence[VMStatus], *, apart: bool) -> str:
    """Return how many VMs there are, in each state, and those in trouble by cause; for at least one VM.

    `apart`: whether these alone are shown.
    """
    states = ", ".join(f"{count} {state.value}" for state, count in count_states(rows).items() if count)
    counted = f"{len(rows)} VM{'s' if len(rows) > 1 else ''}: {states}"
    causes = count_causes(rows)
    if not causes:
        return counted
    hint = "" if apart or sum(causes.values()) == len(rows) else "; these alone: --apart"
    return f"{counted}\nwhy: {', '.join(f'{cause} ({count})' for cause, count in causes.items())}{hint}"


def _why(row: VMStatus, invocation: Invocation) -> str:
    """Return the reason; for a VM in trouble with what to do."""
    return f"{row.why}; to do: {invocation.remedy_text(row.remedy)}" if row.remedy else str(row.why)


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
