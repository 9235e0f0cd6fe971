"""Removes from a folder of installed packages what the webhook and `certs` never read. The Dockerfile runs this file.

It needs only the standard library of the base image. Every name below must be there: a package that comes in another
shape fails the build. Invariant: no file that tells a license is removed.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Final

_CLIENT: Final = Path("kubernetes_asyncio")
_CLIENT_DROPPED: Final = ("client/api", "dynamic", "leaderelection", "stream", "utils", "watch")
"""Packages of kubernetes-asyncio that no module of ours names."""
_CLIENT_MODELS: Final = "client/models"
"""The package of generated models. The client imports the package itself, and looks up models only if asked to."""
_CLIENT_IMPORTS: Final = ("__init__.py", "client/__init__.py", f"{_CLIENT_MODELS}/__init__.py")
"""Modules that import all of these, one a line."""
_IMPORT: Final = re.compile(
    r"(from|import) kubernetes_asyncio\.(client\.(api|models)|dynamic|stream|utils|watch)\b", re.ASCII
)
_EXPORTS: Final = re.compile(r"^__all__ = \[.*?\]\n", re.MULTILINE | re.DOTALL)
_NOTICE: Final = "# Changed for the image of kubevirt-coschedule: the imports of generated code are removed.\n"

_NOT_READ: Final = (".c", ".cpp", ".h", ".pxd", ".pxi", ".pyi", ".pyx")
"""Suffixes of what compilers and type checkers read."""
_TEST: Final = re.compile(r"test_.*\.py|.*_test\.py")
_TESTS: Final = "tests"
_DOCUMENTS: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "RECORD", "pyproject.toml")
_LICENSE: Final = re.compile(r"licen[cs]e|notice|copying|authors", re.IGNORECASE)


def main() -> int:
    """Slim the folder that the command line names."""
    (folder,) = map(Path, sys.argv[1:])
    before = _megabytes(folder)
    drop_generated_code(folder / _CLIENT)
    drop_unread_files(folder)
    sys.stdout.write(f"{folder}: {before:.1f} MB, now {_megabytes(folder):.1f} MB\n")
    return 0


def drop_generated_code(client: Path) -> None:
    """Remove the generated part of kubernetes-asyncio, and the lines that import it."""
    for name in _CLIENT_DROPPED:
        shutil.rmtree(client / name)
    for name in _CLIENT_IMPORTS:
        module = client / name
        lines = module.read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not _IMPORT.match(line)]
        if len(kept) == len(lines):
            raise SystemExit(f"error: {module} imports no generated code; expected lines that match {_IMPORT.pattern}")
        module.write_text(_NOTICE + _EXPORTS.sub("", "".join(kept)), "utf-8")
    for module in (client / _CLIENT_MODELS).iterdir():
        if module.name != "__init__.py":
            module.unlink()


def drop_unread_files(folder: Path) -> None:
    """Remove sources of compiled code, tests, and documents that are no license."""
    for file in [file for file in folder.rglob("*") if file.is_file() and is_unread(file.relative_to(folder))]:
        file.unlink()


def is_unread(file: Path) -> bool:
    """Whether neither program reads this file, and nobody needs it to know a license."""
    if _LICENSE.search(file.name):
        return False
    return (
        file.suffix in _NOT_READ
        or file.name in _DOCUMENTS
        or _TESTS in file.parts[:-1]
        or _TEST.fullmatch(file.name) is not None
    )


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


if __name__ == "__main__":
    sys.exit(main())
