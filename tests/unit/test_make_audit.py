"""`make audit`: what it says of packages, and that no answer is no good news."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

import pytest

REPORT: Final = runpy.run_path(str(Path(__file__).parents[2] / ".ci/audit/__main__.py"))["report"]
GOOD: Final[dict[str, Any]] = {"name": "aiohttp", "version": "3.14.5", "vulns": []}
BAD: Final[dict[str, Any]] = {
    "name": "yarl",
    "version": "1.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}
UNASKED: Final[dict[str, Any]] = {"name": "attrs", "skip_reason": "not found"}
EXPECTED: Final = "expected a package index that tells vulnerabilities, as PyPI does. The first answer: not found"

ROWS: Final = {
    "all are good": ([GOOD, GOOD], [(True, "2 packages have no known vulnerability")]),
    "one is vulnerable": (
        [GOOD, BAD],
        [
            (False, "yarl 1.0 is vulnerable: PYSEC-1, fixed in 1.1; PYSEC-2, fixed in no version yet"),
            (True, "1 packages have no known vulnerability"),
        ],
    ),
    "one could not be asked about": (
        [GOOD, UNASKED],
        [
            (False, f"1 of 2 packages could not be asked about: attrs; {EXPECTED}"),
            (True, "1 packages have no known vulnerability"),
        ],
    ),
    "nothing could be asked": (
        [UNASKED],
        [(False, f"1 of 1 packages could not be asked about: all of them; {EXPECTED}")],
    ),
}


@pytest.mark.parametrize(("packages", "lines"), ROWS.values(), ids=ROWS)
def test_each_lock_has_its_lines(packages: list[dict[str, Any]], lines: list[tuple[bool, str]]) -> None:
    """Only a line that is good news lets the command succeed."""
    assert list(REPORT("a.lock", packages)) == [(good, f"a.lock: {line}") for good, line in lines]
