"""The repository as it lies in a directory, with or without git: its files, and the lists of words.toml."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from passages import Passage, passages

WORDS: Final = ".ci/house/words.toml"
PROGRAMS: Final = ("webhook/", "certs/")
_FOLDERS: Final = ("webhook", "certs", "tests", "manifests", "charts", "docs", ".ci", ".github")
_READ: Final = (".py", ".md", ".yaml", ".yml", ".html", ".js", ".css", "Dockerfile", "Makefile", "pyproject.toml")
_OF_OTHERS: Final = ("tests/controlplane/crds.yaml",)  # parts of KubeVirt's and Longhorn's own files


class Finding(NamedTuple):
    """One fault: where it is, which rule it breaks, what was found and expected, and what to do."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: [{self.rule}] {self.text}"


class Source:
    """One file that the rules read, by its path from the top."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def tree(self) -> ast.Module:
        """The module; an empty one for a file of another language."""
        return ast.parse(self.text if self.path.endswith(".py") else "", self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the module; none for a file of another language."""
        return list(ast.walk(self.tree)) if self.path.endswith(".py") else []

    @cached_property
    def passages(self) -> list[Passage]:
        """What people read in it."""
        return passages(self.path, self.text, self.nodes)


class Repository(NamedTuple):
    """What the rules look at: the sources, the path of every file, and words.toml."""

    sources: Sequence[Source]
    paths: Sequence[str]
    words: Mapping[str, Any]

    def python(self, *folders: str) -> Iterator[Source]:
        """The modules in these folders and below."""
        return (source for source in self.sources if source.path.endswith(".py") and source.path.startswith(folders))

    def prose(self) -> Iterator[tuple[Source, Passage]]:
        """Every passage of every source that [unread_prose] does not except."""
        for source in self.sources:
            if source.path not in self.words["unread_prose"]:
                yield from ((source, passage) for passage in source.passages)

    def stale(self, table: str, needed: Iterable[str]) -> Iterator[Finding]:
        """The exceptions of a table that nothing needs."""
        for key in self.words[table].keys() - set(needed):
            yield Finding(WORDS, 1, "stale", f"[{table}] {key!r} excepts nothing any more: remove the row")


def load(root: Path) -> Repository:
    """Read what lies below `root`."""
    found = [*root.glob("*"), *(path for folder in _FOLDERS for path in (root / folder).rglob("*"))]
    paths = sorted(path.relative_to(root).as_posix() for path in found if path.is_file())
    paths = [path for path in paths if "__pycache__" not in path and path not in _OF_OTHERS]
    sources = [Source(path, (root / path).read_text(encoding="utf-8")) for path in paths if path.endswith(_READ)]
    return Repository(sources, paths, tomllib.loads((root / WORDS).read_text(encoding="utf-8")))
