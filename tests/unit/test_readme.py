"""README.md stays short, and the generated tables and lists of docs/reference follow the code.

`PYTHONPATH=tests python tests/unit/test_readme.py` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest
from support import tested_versions
from support.generated_part import with_part

from webhook.core.observe.vm_status import State
from webhook.reunite.reports import EventReason

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
REFERENCE: Final = ROOT / "docs/reference"
README_LINES: Final = 130
FIRST_SCREEN_LINES: Final = 40


def reunite_events() -> str:
    """The table of the Events of `reunite`."""
    rows = [f"| `{each.code}` | {each.kind} | {each.when} |" for each in EventReason]
    return "\n".join(["| Reason | Type | When |", "|---|---|---|", *rows])


def states() -> str:
    """The table of states."""
    rows = [f"| `{state}` | {state.meaning} |" for state in State]
    return "\n".join(["| State | What it means |", "|---|---|", *rows])


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "reunite-events": reunite_events,
    "states": states,
    "compatibility": tested_versions.table,
}
PAGES: Final = {"reunite-events": "metrics", "states": "commands"}
"""The page of a table that has not the page's name."""


def page_of(name: str) -> Path:
    """Return the page that has this table."""
    return REFERENCE / f"{PAGES.get(name, name)}.md"


@pytest.mark.parametrize("name", TABLES)
def test_a_page_of_the_reference_shows_what_the_code_has(name: str) -> None:
    """Otherwise run `PYTHONPATH=tests python tests/unit/test_readme.py`."""
    text = page_of(name).read_text(encoding="utf-8")
    assert with_part(text, name, TABLES[name]()) == text


def test_the_readme_is_short_and_shows_the_annotation_at_once() -> None:
    """At most 130 lines, and the annotation in the first 40, which is one screen."""
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES
    assert any('kubevirt-scheduler/co-schedule: "true"' in line for line in lines[:FIRST_SCREEN_LINES])


def test_the_readme_names_the_versions_that_the_tests_take() -> None:
    """Of Kubernetes, KubeVirt and Longhorn; docs/reference/compatibility.md has the others."""
    _, _, section = README.read_text(encoding="utf-8").partition("## What was tested")
    section, _, _ = section.partition("\n## ")
    kubernetes = " and ".join(tested_versions.SERVERS.values())
    kubevirt, _, _ = tested_versions.KUBEVIRT.rpartition(".")
    assert f"| Kubernetes | {kubernetes} |" in section
    assert f"| KubeVirt | {kubevirt}, " in section
    assert f"| Longhorn | {tested_versions.LONGHORN}, " in section


if __name__ == "__main__":
    for table in TABLES:
        file = page_of(table)
        file.write_text(with_part(file.read_text(encoding="utf-8"), table, TABLES[table]()), encoding="utf-8")
