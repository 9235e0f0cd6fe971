"""The documentation site: each page has its place, and what the strict build of the site does not look at."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pictures.__main__ import PICTURES

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = (*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("tests/*/README.md"))
_LINK: Final = re.compile(r"(!?)\[[^]]*\]\(([^)\s]+)\)")
_FENCED: Final = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_FLAT: Final = re.compile(r"^ {1,3}(?:[-*+]|\d{1,2}[.]) .*", re.MULTILINE)

Menu = str | Sequence[Any] | Mapping[str, Any]


def _named(menu: Menu) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for each in menu.values() if isinstance(menu, Mapping) else menu:
            yield from _named(each)


def test_each_page_is_in_the_menu_once() -> None:
    """Otherwise add it to `nav` in .ci/site/zensical.toml."""
    named = list(_named(tomllib.loads((ROOT / ".ci/site/zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]))
    pages = set(ROOT.glob("docs/**/*.md"))
    assert {name for name in named if name.startswith("docs/")} == {str(page.relative_to(ROOT)) for page in pages}
    assert len(named) == len(set(named))
    assert all((ROOT / name).is_file() for name in named)


def test_each_link_to_a_file_leads_to_one() -> None:
    """`make docs` looks at links to pages and headings; these are the others. Nothing is loaded from another server."""
    found = [(page, link) for page in PAGES for link in _LINK.findall(page.read_text(encoding="utf-8"))]
    pictures = {link for _, (mark, link) in found if mark == "!"}
    paths = [(page, link) for page, (_, link) in found if not urlsplit(link).scheme and urlsplit(link).path]
    assert len(pictures) > 3
    assert [link for link in pictures if urlsplit(link).scheme] == []
    assert [f"{page}: {link}" for page, link in paths if not (page.parent / urlsplit(link).path).exists()] == []


def test_each_picture_is_taken_by_make_pictures_and_is_on_a_page() -> None:
    """A picture that nobody takes again, or nobody sees, would be of an older page."""
    images = {file.stem for file in (DOCS / "images").iterdir()}
    pages = "".join(file.read_text(encoding="utf-8") for file in DOCS.rglob("*.md"))
    assert images == {each.name for each in PICTURES}
    assert {name for name in images if f"/images/{name}.png)" not in pages} == set()


def test_no_nested_list_is_shown_flat() -> None:
    """GitHub nests an item of two or three spaces; the site needs four."""
    pages = {page: _FENCED.sub("", page.read_text(encoding="utf-8")) for page in PAGES}
    assert [f"{page}: {found}" for page, text in pages.items() for found in _FLAT.findall(text)] == []
