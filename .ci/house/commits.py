"""Rule of commits: a subject has at most so many characters. Reads the history by git, as far as the clone has it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from repository import Finding

_SINCE: Final = "8a6cb2a557c373856a3ea30a2c995d159e70ee65"  # earlier commits are as they are
_SUBJECT_CHARS: Final = 72  # git and GitHub cut longer ones


def long_subjects(root: Path, since: str = _SINCE, most: int = _SUBJECT_CHARS) -> Iterator[Finding]:
    """A commit after `since` has a subject of at most so many characters; merges do not count."""
    for commit, subject in _subjects(root, since):
        if len(subject) > most:
            what = f"{len(subject)} characters, at most {most}: amend the commit: {subject}"
            yield Finding(f"commit {commit}", 1, "long-subject", what)


def _subjects(root: Path, since: str) -> list[tuple[str, str]]:
    """Commit and subject of each commit after `since`; none without git, or in a shallow clone that lacks `since`."""
    command = ["git", "-C", str(root), "log", "--no-merges", "--format=%h %s", f"{since}..HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    except FileNotFoundError:
        return []
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return [(commit, subject) for commit, _, subject in (line.partition(" ") for line in lines)]
