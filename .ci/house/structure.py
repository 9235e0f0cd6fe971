"""Rules of size and of names: one subject a module, a few files a folder, one name for one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from repository import PROGRAMS, Finding, Repository, Source

_HUMPS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def long_modules(repository: Repository) -> Iterator[Finding]:
    """A module has at most so many lines, as `wc -l` counts them."""
    most, long = repository.words["limits"]["module_lines"], []
    for source in repository.python(*PROGRAMS, "tests/", ".ci/"):
        lines = source.text.count("\n")
        if lines > most:
            long.append(source.path)
            if source.path not in repository.words["long_modules"]:
                yield Finding(source.path, 1, "long-module", f"{lines} lines, at most {most}: split it by subject")
    yield from repository.stale("long_modules", long)


def full_folders(repository: Repository) -> Iterator[Finding]:
    """A folder of the programs has at most so many files, beside __init__.py and folders."""
    most, full = repository.words["limits"]["folder_files"], []
    paths = map(PurePosixPath, repository.paths)
    counts = Counter(str(path.parent) for path in paths if path.name != "__init__.py")
    for folder, files in counts.items():
        if files > most and f"{folder}/".startswith(PROGRAMS):
            full.append(folder)
            if folder not in repository.words["full_folders"]:
                yield Finding(folder, 1, "full-folder", f"{files} files, at most {most}: divide it by subject")
    yield from repository.stale("full_folders", full)


def shared_names(repository: Repository) -> Iterator[Finding]:
    """A public name at the top level of a module means one thing in both programs."""
    places: dict[str, dict[str, int]] = defaultdict(dict)
    for source in repository.python(*PROGRAMS):
        for name, line in _top_level(source.tree):
            places[name].setdefault(source.path, line)
    shared = {name: found for name, found in places.items() if len(found) > 1}
    for name, found in shared.items():
        if name not in repository.words["shared_names"]:
            (path, line), *others = found.items()
            what = f"{name} is defined in {', '.join(f'{other}:{at}' for other, at in others)} too, expected one place"
            advice = "name each for what it does, or give their one meaning in [shared_names]"
            yield Finding(path, line, "shared-name", f"{what}: {advice}")
    yield from repository.stale("shared_names", shared)


def _top_level(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(public name, line) of each function, class, alias and constant of a module."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((name, node.lineno) for name in names if not name.startswith("_"))


def forbidden_names(repository: Repository) -> Iterator[Finding]:
    """No name has a word that [names] forbids; in the programs none that [program_names] forbids either."""
    found = [*_forbidden(repository, "names", *PROGRAMS, "tests/"), *_forbidden(repository, "program_names", *PROGRAMS)]
    for name, path, line, instead in found:
        if name not in repository.words["kept_names"]:
            yield Finding(path, line, "name", f"got {name}, expected {instead}: rename it")
    yield from repository.stale("kept_names", (name for name, *_ in found))


def _forbidden(repository: Repository, table: str, *folders: str) -> Iterator[tuple[str, str, int, str]]:
    """(name, path, line, what to write instead) of each name in these folders that a row of the table forbids."""
    rows = [
        (re.compile(rf"(?:^|_)(?:{words.lower()})(?:_|$)"), words[0].isupper(), instead)
        for words, instead in repository.words[table].items()
    ]
    for source in repository.python(*folders):
        for name, line, is_type in _defined(source):
            words = "_".join(_HUMPS.findall(name)).lower()
            for pattern, types_only, instead in rows:
                if (is_type or not types_only) and pattern.search(words):
                    yield name, source.path, line, instead


def _defined(source: Source) -> Iterator[tuple[str, int, bool]]:
    """(name, line, whether it is a class or a module) of what a module defines, and of the module.

    The name of a test is a sentence: the rules of prose read it.
    """
    yield PurePosixPath(source.path).stem, 1, True
    for node in source.nodes:
        match node:
            case ast.ClassDef(name=name):
                yield name, node.lineno, True
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("test_"):
                yield name, node.lineno, False
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno, False
