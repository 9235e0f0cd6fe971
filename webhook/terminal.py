"""Text for a terminal: YAML, JSON, aligned columns, colors, and the difference of two affinities.

Names come from a cluster or from files: `printable` (webhook.component_base.errors) is for them.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import msgspec
import yaml

RESET: Final = "\x1b[0m"
RED: Final = "\x1b[31m"
GREEN: Final = "\x1b[32m"
YELLOW: Final = "\x1b[33m"
DIFF_COLOR: Final = {"+": GREEN, "-": RED}
_NEVER_FOLDED: Final = 1 << 20  # characters: a sentence stays one line, so that grep finds it
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_GAP: Final = "  "


def to_yaml(*values: object) -> str:
    """Return the values as YAML; several values become several documents."""
    text: str = yaml.dump_all(
        values,
        Dumper=_DUMPER,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=len(values) > 1,
        width=_NEVER_FOLDED,
    )
    return text


def to_json(value: object) -> str:
    """Return the value as indented JSON, with a line break at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def affinity_diff(before: object, after: object) -> list[str]:
    """Return the lines of a unified diff of two affinities as YAML. An absent affinity has no lines."""
    if before == after:
        return ["unchanged"]
    old, new = (to_yaml({"affinity": side}).splitlines() if side else [] for side in (before, after))
    return list(difflib.unified_diff(old, new, "before", "after", n=len(old) + len(new), lineterm=""))


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, with its cells aligned."""
    return [_GAP.join(cells) for cells in padded(rows)]


def padded(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the rows with each cell padded to the width of its column, except the last cell of each row."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    return [[*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]] for row in rows]
