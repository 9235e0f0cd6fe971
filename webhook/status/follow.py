"""What --watch shows of each snapshot: the whole table on a terminal's screen, or a line for each change."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final, Self

from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import VMStatus
from webhook.status import text
from webhook.status.output import Output, now
from webhook.status.report import Asked

if TYPE_CHECKING:
    from webhook.kube.vm_status import Changes, VMStatuses

_HOME: Final = "\x1b[H"
_TO_THE_LINES_END: Final = "\x1b[K"
_TO_THE_SCREENS_END: Final = "\x1b[J"
_OTHER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"  # and no cursor
_FIRST_SCREEN: Final = "\x1b[?25h\x1b[?1049l"


class Screen:
    """The terminal's other screen, for as long as the block lasts; what was on the first one is there afterwards."""

    def __init__(self, out: Output, asked: Asked, origin: str) -> None:
        self._out = out
        self._asked = asked
        self._origin = origin

    def __enter__(self) -> Self:
        self._out.write(_OTHER_SCREEN)
        return self

    def __exit__(self, *_: object) -> None:
        self._out.write(_FIRST_SCREEN)

    def show(self, snapshot: VMStatuses, _: Changes) -> None:
        """The whole screen in one write, over what was there: nothing flickers."""
        size = shutil.get_terminal_size()
        chosen = self._asked.rows(snapshot.rows)
        foot = [
            "",
            text.summary(vm_status.count_states(chosen)),
            f"{self._origin} at {now()}; Ctrl-C ends",
            *(f"not up to date: {problem}" for problem in snapshot.late),
        ]
        shown = self._asked.shown(chosen)
        room = max(1, size.lines - len(foot) - 2)
        lines = self._out.table.lines(shown[:room], now()) if shown else []
        if len(shown) > room:
            lines.append(f"... and {len(shown) - room} more: choose with --apart, --namespace or names")
        cut = [text.cut(line, size.columns) + _TO_THE_LINES_END for line in (*lines, *foot)]
        self._out.write(_HOME + "\r\n".join(cut) + _TO_THE_SCREENS_END)


class Lines:
    """Each row once, and again when it has changed; with --apart until it is in trouble no more."""

    def __init__(self, out: Output, asked: Asked, origin: str) -> None:
        self._out = out
        self._asked = asked
        self._origin = origin
        self._known: dict[tuple[str, str], VMStatus] = {}
        self._late: tuple[str, ...] = ()

    def show(self, snapshot: VMStatuses, changes: Changes) -> None:
        """What is new."""
        if snapshot.late != self._late:
            self._late = snapshot.late
            self._out.tell(*(f"{self._origin}: not up to date: {problem}" for problem in snapshot.late))
        for row in self._asked.rows(changes.rows):
            self._tell(row, snapshot.at)
        there = {(row.namespace, row.name) for row in changes.rows} if changes.whole else self._known.keys()
        for key in sorted(self._known.keys() & set(changes.gone) | self._known.keys() - there):
            del self._known[key]
            self._out.gone(*key, snapshot.at)

    def _tell(self, row: VMStatus, at: str) -> None:
        key, shown = (row.namespace, row.name), bool(self._asked.shown([row]))
        known = self._known.pop(key, None)
        if shown:
            self._known[key] = row
        if row != known and (shown or known):
            self._out.change(row, at)
