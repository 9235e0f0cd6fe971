"""What --watch shows: the whole table if standard output is a terminal, else a line for each change."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import State, VMStatus
from webhook.status import text
from webhook.status.output import Output, nobody, now
from webhook.status.report import TROUBLED, Asked

if TYPE_CHECKING:
    from webhook.kube.vm_status import Changes, VMStatuses

_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_SCREEN: Final = "\x1b[J"
_ALTERNATE_SCREEN: Final = "\x1b[?1049h\x1b[?25l"  # and hide the cursor
_MAIN_SCREEN: Final = "\x1b[?25h\x1b[?1049l"


_WORST_FIRST: Final = (State.STUCK, State.APART, State.UNKNOWN, State.PENDING, State.FREE, State.TOGETHER)


class Screen:
    """The alternate screen of the terminal, until the block ends. The terminal then restores its main screen."""

    def __init__(self, out: Output, asked: Asked, origin: str) -> None:
        self._out = out
        self._asked = asked
        self._origin = origin

    def __enter__(self) -> Self:
        self._out.write(_ALTERNATE_SCREEN)
        return self

    def __exit__(self, *_: object) -> None:
        self._out.write(_MAIN_SCREEN)

    def show(self, snapshot: VMStatuses, _: Changes) -> None:
        """Write the whole screen at once over the previous one, so that it does not flicker."""
        size = shutil.get_terminal_size()
        chosen = self._asked.rows(snapshot.rows)
        foot = [
            "",
            text.summary(vm_status.count_states(chosen)) if chosen else nobody(self._asked, snapshot.rows),
            f"{self._origin} at {now()}; end with Ctrl-C",
            *(f"not up to date: {problem}" for problem in snapshot.late),
        ]
        shown = sorted(self._asked.shown(chosen), key=lambda row: _WORST_FIRST.index(row.state))
        height = max(1, size.lines - len(foot) - 2)
        lines = self._out.table.lines(shown[:height], now()) if shown else []
        if len(shown) > height:
            lines.append(_below(shown[height:]))
        cut = [text.cut(line, size.columns) + _CLEAR_LINE for line in (*lines, *foot)]
        self._out.write(_HOME + "\r\n".join(cut) + _CLEAR_SCREEN)


def _below(rows: Sequence[VMStatus]) -> str:
    """Return how many rows do not fit on the screen, and how many of these are apart or stuck."""
    counts = vm_status.count_states(rows)
    troubled = [
        f"{counts[state]} of them {state.value}" for state in _WORST_FIRST if state in TROUBLED and counts[state]
    ]
    return "... " + ", ".join((f"{len(rows)} more", *troubled))


class Lines:
    """A line for each row, and another line when the row changes. With --apart, the last line says that the VM is
    no longer apart or stuck.
    """

    def __init__(self, out: Output, asked: Asked, origin: str) -> None:
        self._out = out
        self._asked = asked
        self._origin = origin
        self._known: dict[tuple[str, str], VMStatus] = {}
        self._late: tuple[str, ...] = ()

    def show(self, snapshot: VMStatuses, changes: Changes) -> None:
        """Write a line for each row that changed, and for each row that is gone."""
        if snapshot.late != self._late:
            self._late = snapshot.late
            self._out.tell(*(f"{self._origin}: not up to date: {problem}" for problem in snapshot.late))
        for row in self._asked.rows(changes.rows):
            self._tell(row, snapshot.at)
        existing = {(row.namespace, row.name) for row in changes.rows} if changes.whole else self._known.keys()
        for key in sorted(self._known.keys() & set(changes.gone) | self._known.keys() - existing):
            del self._known[key]
            self._out.gone(*key, snapshot.at)

    def _tell(self, row: VMStatus, at: str) -> None:
        key, shown = (row.namespace, row.name), bool(self._asked.shown([row]))
        known = self._known.pop(key, None)
        if shown:
            self._known[key] = row
        if row != known and (shown or known):
            self._out.change(row, at)
