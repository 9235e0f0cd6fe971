"""Builds the documentation site into dist/site/html: `python .ci/site`, or `make docs`.

A missing page or heading fails, and so does each link or picture that leads to no file of the site, or to a script or
picture of another server. The pages keep their places in the repository, so that their links need no change.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
SITE: Final = ROOT / "dist/site"
SOURCE: Final = SITE / "source"
HTML: Final = SITE / "html"
PAGES: Final = ("*.md", "LICENSE", "docs/**/*.*", "tests/*/README.md")
_FLAT: Final = re.compile(r" {1,3}(?:[-*+]|\d{1,2}[.]) ")
_LOADED: Final = {("script", "src"), ("img", "src"), ("link", "href")}
_FOLLOWED: Final = {*_LOADED, ("a", "href")}


class _Addresses(HTMLParser):
    """What a page loads, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[tuple[str, str], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the addresses of a tag."""
        self.found += [((tag, name), value) for name, value in attrs if value and (tag, name) in _FOLLOWED]


def collect() -> None:
    """Copy the pages, and mermaid.js, which draws their diagrams."""
    shutil.rmtree(SITE, ignore_errors=True)
    for path in (path for pattern in PAGES for path in ROOT.glob(pattern) if path.is_file()):
        copy = SOURCE / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    shutil.copyfile(HERE / "extra.css", SOURCE / "extra.css")
    shutil.copyfile(HERE / "zensical.toml", SITE / "zensical.toml")
    (SOURCE / "mermaid.js").write_bytes(files("mermaidx").joinpath("assets/mermaid.js").read_bytes())


def broken(html: Path) -> Iterator[str]:
    """Every address in the built pages that leads to no file, and everything that is loaded from another server."""
    for page in sorted(html.rglob("*.html")):
        addresses = _Addresses()
        addresses.feed(page.read_text(encoding="utf-8"))
        for where, address in addresses.found:
            parts = urlsplit(address)
            foreign = bool(parts.scheme or parts.netloc)
            path = unquote(parts.path)
            target = html / path[1:] if path.startswith("/") else page.parent / path  # 404.html stands at any place
            if (foreign and where in _LOADED) or (not foreign and parts.path and not target.is_file()):
                yield f"{page.relative_to(html)}: {address}"


def flat_lists(source: Path) -> Iterator[str]:
    """Every nested list that the site would show as one list, and GitHub as two: it needs four spaces."""
    for page in sorted(source.rglob("*.md")):
        fenced = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced and _FLAT.match(line):
                yield f"{page.relative_to(source)}:{number}: a nested list of {len(line) - len(line.lstrip())} spaces"


def main() -> int:
    """Build the site. Returns 1 if a page has a link that leads nowhere, or a nested list that the site shows flat."""
    collect()
    zensical = Path(sys.executable).with_name("zensical")
    ended = subprocess.run([zensical, "build", "--strict", "--clean", "-f", SITE / "zensical.toml"], check=False)  # noqa: S603 - ours
    faults = [*broken(HTML), *flat_lists(SOURCE)] if ended.returncode == 0 else []
    for fault in faults:
        print(f"broken: {fault}")
    if not faults and ended.returncode == 0:
        print(f"See it: python3 -m http.server --directory {HTML.relative_to(ROOT)}")
    return 1 if faults else ended.returncode


if __name__ == "__main__":
    sys.exit(main())
