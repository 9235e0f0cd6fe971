"""A row of the table: what one program does with pods in one form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from controlplane import build

ANY_NODE: Final = "any node"
_NAMED_FORMS: Final = 6
NO_NODE: Final = "no node: pending"
HEAD: Final = "| Program | Settings | Form | Expected | Seen |\n|---|---|---|---|---|"


class Row(NamedTuple):
    """What was expected and what was seen; both are words for a reader."""

    program: str
    settings: str
    form: str
    expected: str
    seen: str

    @property
    def as_expected(self) -> bool:
        """Whether what was seen is one of the things that were expected, or any where any will do."""
        return self.seen in self.expected.split(" or ") or (self.expected == ANY_NODE and self.seen != NO_NODE)


def table(rows: Iterable[Row]) -> str:
    """The rows as Markdown. Forms with the same outcome under the same settings share lines, two forms a line.

    The last line of the settings is for the most forms. If these are many, the line says `every form` or `every other`.
    """
    lines = [HEAD]
    for (program, settings), some in groupby(rows, key=lambda row: (row.program, row.settings)):
        same: dict[tuple[str, str], list[Row]] = {}
        for row in some:
            same.setdefault((row.expected, row.seen), []).append(row)
        for (expected, seen), alike in sorted(same.items(), key=lambda outcome: len(outcome[1])):
            forms = [row.form for row in alike]
            if len(alike) > _NAMED_FORMS and alike is max(same.values(), key=len):
                forms = ["every form" if len(same) == 1 else "every other form"]
            shown = seen if alike[0].as_expected else f"**{seen}**"
            for first in range(0, len(forms), 2):
                named = "; ".join(forms[first : first + 2])
                lines.append(f"| {program} | {settings} | {named} | {expected} | {shown} |")
    return "\n".join(lines)


def surprises(rows: Sequence[Row]) -> list[Row]:
    """The rows in which something else happened than was expected."""
    return [row for row in rows if not row.as_expected]


def pinned(unit: build.Unit, module: str) -> str:
    """The version of a module that a unit's go.mod requires."""
    found = re.search(rf"^require {re.escape(module)} v(\S+)$", (unit.folder / "go.mod").read_text(), re.MULTILINE)
    assert found, f"{unit.name}: no {module}"
    return found[1]
