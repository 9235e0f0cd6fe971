"""YAML, columns and diffs for a terminal."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

import msgspec
import yaml

_NEVER_FOLDED: Final = 1 << 20  # characters: a sentence stays one line, to be found by grep
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_GAP: Final = "  "
_RESET: Final = "\x1b[0m"
_RED: Final = "\x1b[31m"
_GREEN: Final = "\x1b[32m"
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_DIFF_COLOR: Final = {"+": _GREEN, "-": _RED}


def to_yaml(*values: object) -> str:
    """The values as YAML; several of them as several documents."""
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
    """The value as indented JSON, with a line break at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def affinity_diff(before: object, after: object) -> list[str]:
    """The lines of a unified diff of two affinities, as YAML. No affinity at all is shown as no line."""
    if before == after:
        return ["unchanged"]
    old, new = (to_yaml({"affinity": side}).splitlines() if side else [] for side in (before, after))
    return list(difflib.unified_diff(old, new, "before", "after", n=len(old) + len(new), lineterm=""))


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their cells aligned; the last cell of a row is as long as it is."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    return [
        _GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    ]


def _printable(line: str) -> str:
    return line.translate(_CONTROL)
