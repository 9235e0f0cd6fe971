"""What the pages of docs promise their readers, and how long all of them are.

README.md counts among the pages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.objects.metric_table import METRIC_ROWS

from certs import cli as certs
from webhook import cli
from webhook.core.reasons import Reason

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
PAGES: Final = (README, *sorted(DOCS.rglob("*.md")))
OF_CONTRIBUTORS: Final = {DOCS / f"{name}.md" for name in ("architecture", "decisions", "tests")}
OF_USERS: Final = [page for page in PAGES if page not in OF_CONTRIBUTORS]
MAX_PAGES: Final = 27
MAX_WORDS: Final = 22_500
FIRST_SCREEN_LINES: Final = 40

_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCED: Final = re.compile(r"```.*?```", re.DOTALL)
_TITLE: Final = re.compile(r"# [^\n]+\n+")
_CODE: Final = re.compile(r"`([^`]+)`")
_SOURCE: Final = re.compile(r"(?<![\w./-])(?:webhook|certs|tests|\.ci)/[\w./*-]*[\w*]")
_MESSAGE: Final = re.compile(r"[a-z]\w*,?(?: [\w-][\w',:.-]*)+")  # no sign of YAML, of a header or of a path
_OF_SHELL: Final = (
    "kubevirt-coschedule",
    "kubectl",
    "virtctl",
    "make",
    "helm",
    "python",
    "docker",
    "pipx",
    "port-forward",
)
_COMMANDS: Final = (*_OF_SHELL, *cli.COMMANDS.commands, *certs.COMMANDS.commands)
_OF_OTHERS: Final = {"failing open virt-launcher.kubevirt-coschedule.io", "bad option"}  # what other programs print
_CODES: Final = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _prose(page: Path) -> str:
    return _FENCED.sub("", _COMMENT.sub("", page.read_text(encoding="utf-8")))


def test_the_pages_are_few_and_short() -> None:
    """A page or a paragraph that is new takes the place of another one. Words are counted as by `wc -w`."""
    assert len(PAGES) <= MAX_PAGES
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in PAGES) <= MAX_WORDS


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=_name)
def test_the_first_sentence_says_for_whom_the_page_is(page: Path) -> None:
    """After the title."""
    assert _TITLE.sub("", page.read_text(encoding="utf-8"), count=1).startswith("For ")


def test_the_first_screen_of_the_readme_says_what_was_never_seen() -> None:
    """The one fact that a prospect must not have to look for."""
    screen = " ".join(README.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES])
    assert (
        "We have no report yet from a cluster with KubeVirt and Longhorn together; the tests play one or the other"
        in screen
    )


@pytest.mark.parametrize("page", OF_USERS, ids=_name)
def test_a_page_of_users_names_no_file_of_the_source(page: Path) -> None:
    """They have manifests and a program."""
    assert _SOURCE.findall(_prose(page)) == []


def _texts() -> Iterator[str]:
    """The texts in the code, and the parts of those with fields."""
    for folder in ("webhook", "certs"):
        for file in ROOT.glob(f"{folder}/**/*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def _quoted(page: Path) -> Iterator[str]:
    for code in _CODE.findall(_prose(page)):
        words = " ".join(code.split())
        if _MESSAGE.fullmatch(words) and words not in _OF_OTHERS and words.partition(" ")[0] not in _COMMANDS:
            yield words


def test_each_message_that_a_page_quotes_is_in_the_code() -> None:
    """Somebody searches the log for it."""
    texts = "\n".join(_texts())
    quoted = {(page.name, words) for page in OF_USERS for words in _quoted(page)}
    assert ("serve.md", "certificate not loaded") in quoted
    assert sorted(each for each in quoted if each[1] not in texts) == []


def test_the_reasons_that_need_a_user_are_on_their_page() -> None:
    """Each code once. A wrong value, an object that could not be read and a fault always need somebody."""
    page = (DOCS / "reference/reasons.md").read_text(encoding="utf-8")
    codes = {reason.code for reason in Reason}
    rows = [code for code in _CODES.findall(page) if code in codes]
    assert sorted(rows) == sorted(set(rows))
    needed = {
        reason.code
        for reason in Reason
        if reason.columns.wrong_value or reason.columns.unread or reason.columns.fault or reason.columns.excludes
    }
    assert needed <= set(rows)


@pytest.mark.parametrize("page", OF_USERS, ids=_name)
def test_each_reason_that_a_page_names_exists(page: Path) -> None:
    """In the first column of a table of reasons."""
    first = re.findall(r"^\| (`[^|]+) \|", _prose(page), re.MULTILINE) if page.name == "reasons.md" else []
    named = {code for cell in first for code in _CODES.findall(cell)}
    assert named <= {reason.code for reason in Reason}
    assert bool(named) is (page.name == "reasons.md")


def test_the_metrics_of_the_page_exist() -> None:
    """Their names are without the prefix of all."""
    page = (DOCS / "reference/metrics.md").read_text(encoding="utf-8")
    _, _, table = page.partition("## All metrics")
    names = {code for row in re.findall(r"^\|.*\|$", table, re.MULTILINE) for code in _CODE.findall(row) if "_" in code}
    titles = {row.title for row in METRIC_ROWS}
    assert {f"kubevirt_coschedule_{name}" for name in names if not name.startswith("kubevirt")} <= titles
    assert len(names) > 5
