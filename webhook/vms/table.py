"""VMs as a table for a terminal, as in kubectl. Control characters of names are shown as escapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from webhook.core.observe.vm_item import VMItem
from webhook.core.observe.vm_status import State
from webhook.terminal import GREEN, RED, RESET, YELLOW, padded, printable

_GAP: Final = "   "  # as in kubectl
_STATE: Final = "STATE"
_COLOR: Final[Mapping[str, str]] = {
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
Cell = Callable[[VMItem], str]


def table(
    items: Sequence[VMItem], columns: Mapping[str, Cell], *, namespaces: bool, head: bool, color: bool
) -> list[str]:
    """Return a line for each VM; none for no VM.

    Args:
        items: the VMs.
        columns: after those that every table has: the head of each, and its cell.
        namespaces: whether the table has the column NAMESPACE.
        head: whether the first line has the names of the columns.
        color: whether states have ANSI colors.
    """
    if not items:
        return []
    first: dict[str, Cell] = {"NAMESPACE": lambda item: item.namespace} if namespaces else {}
    every = {**first, **_EVERY, **columns}
    cells = [[printable(cell(item)) for cell in every.values()] for item in items]
    shown = padded([*([list(every)] if head else []), *cells])
    place = list(every).index(_STATE)
    for line, item in zip(shown[len(shown) - len(items) :], items, strict=True):
        if color and item.state in _COLOR:  # last, because a color takes no space on the screen
            line[place] = f"{_COLOR[item.state]}{line[place]}{RESET}"
    return [_GAP.join(line) for line in shown]


def _node(item: VMItem) -> str:
    return (item.node or "-") + (" (migrating)" if item.migrating else "")


def _share_managers(item: VMItem) -> str:
    return ", ".join(f"{volume.claim}: {volume.node or '-'}" for volume in item.volumes) or "-"


def asked(item: VMItem) -> str:
    """Return the value that asks, or does not ask, and whose it is if it is not the VM's own."""
    return f"{item.asked} ({item.asked_by})" if item.asked and item.asked_by != "vm" else item.asked or "-"


_EVERY: Final[dict[str, Cell]] = {
    "VM": lambda item: item.name,
    "NODE": _node,
    "SHARE-MANAGERS": _share_managers,
    _STATE: lambda item: str(item.state),
}


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
