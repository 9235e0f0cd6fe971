"""The documentation site: each page has its place, and the check of the built site finds what leads nowhere."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from pictures.__main__ import PICTURES

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"

Menu = str | Sequence[Any] | Mapping[str, Any]


def _named(menu: Menu) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for each in menu.values() if isinstance(menu, Mapping) else menu:
            yield from _named(each)


def _site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_main", ROOT / ".ci/site/__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_page_is_in_the_menu_once() -> None:
    """Otherwise add it to `nav` in .ci/site/zensical.toml."""
    named = list(_named(tomllib.loads((ROOT / ".ci/site/zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]))
    pages = set(ROOT.glob("docs/**/*.md"))
    assert {name for name in named if name.startswith("docs/")} == {str(page.relative_to(ROOT)) for page in pages}
    assert len(named) == len(set(named))
    assert all((ROOT / name).is_file() for name in named)


@pytest.mark.parametrize(
    ("tag", "broken"),
    [
        pytest.param('<a href="other.html#x">', False, id="another page"),
        pytest.param('<a href="/folder/page.html">', False, id="a page from the top"),
        pytest.param('<a href="#here">', False, id="this page"),
        pytest.param('<a href="https://example.com/">', False, id="a link to another server"),
        pytest.param('<a href="no.html">', True, id="no such page"),
        pytest.param('<a href="../folder">', True, id="a folder"),
        pytest.param('<img src="no.png">', True, id="no such picture"),
        pytest.param('<script src="https://example.com/x.js">', True, id="a script of another server"),
        pytest.param('<link href="//example.com/x.css">', True, id="a stylesheet of another server"),
    ],
)
def test_what_leads_nowhere_or_comes_from_another_server_is_found(tag: str, broken: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a column
    """In any page of the site."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "other.html").touch()
    (folder / "page.html").write_text(tag, encoding="utf-8")
    assert bool(list(_site().broken(tmp_path))) == broken


def test_each_picture_is_taken_by_make_pictures_and_is_on_a_page() -> None:
    """A picture that nobody takes again, or nobody sees, would be of an older page."""
    images = {file.stem for file in (DOCS / "images").iterdir()}
    pages = "".join(file.read_text(encoding="utf-8") for file in DOCS.rglob("*.md"))
    assert images == {each.name for each in PICTURES}
    assert {name for name in images if f"/images/{name}.png)" not in pages} == set()


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        pytest.param("- a:\n  - b\n", True, id="two spaces"),
        pytest.param("1. a:\n   - b\n", True, id="three spaces"),
        pytest.param("- a:\n    - b\n  and more\n", False, id="four spaces"),
        pytest.param("```yaml\na:\n  - b\n```\n", False, id="an example"),
    ],
)
def test_a_nested_list_that_the_site_shows_flat_is_found(text: str, flat: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a row
    """GitHub shows it nested."""
    (tmp_path / "page.md").write_text(text)
    assert bool(list(_site().flat_lists(tmp_path))) is flat
