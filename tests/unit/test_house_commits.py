"""The rule of commits (.ci/house/commits.py), in repositories that the test makes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commits import long_subjects

_NAMED = ("-c", "user.name=A", "-c", "user.email=a@example.com")


def git(root: Path, *words: str) -> str:
    """Run git in this repository. Returns its output."""
    done = subprocess.run(["git", "-C", str(root), *_NAMED, *words], capture_output=True, text=True, check=True)  # noqa: S603, S607 - fixed words
    return done.stdout.strip()


def commit(root: Path, subject: str) -> str:
    """Make an empty commit. Returns its hash."""
    git(root, "commit", "--allow-empty", "--quiet", "-m", subject)
    return git(root, "rev-parse", "HEAD")


def found(root: Path, since: str) -> list[str]:
    """The findings, if a subject may have 9 characters."""
    return [finding.text for finding in long_subjects(root, since, 9)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one commit, whose subject is too long."""
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "before the rule")
    return tmp_path


def test_a_long_subject_since_the_commit_is_found(root: Path) -> None:
    """Earlier commits are as they are."""
    since = git(root, "rev-parse", "HEAD")
    commit(root, "nine char")
    assert found(root, since) == []
    commit(root, "ten chars.")
    commit(root, "short")
    assert found(root, since) == ["10 characters, at most 9: amend the commit: ten chars."]


def test_a_merge_may_have_a_long_subject(root: Path) -> None:
    """GitHub writes two whole hashes into the subject of a pull request's merge."""
    since = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "--quiet", "-b", "other")
    commit(root, "short")
    git(root, "checkout", "--quiet", "-")
    git(root, "merge", "--quiet", "--no-ff", "-m", "Merge one into the other", "other")
    assert found(root, since) == []


def test_a_shallow_clone_and_a_plain_directory_have_no_finding(root: Path, tmp_path: Path) -> None:
    """They lack the commit, or all of them."""
    since = git(root, "rev-parse", "HEAD")
    commit(root, "a subject that is too long")
    assert found(root, since)
    shallow, plain = tmp_path / "shallow", tmp_path / "plain"
    git(root, "clone", "--quiet", "--depth=1", f"file://{root}", str(shallow))
    plain.mkdir()
    assert found(shallow, since) == found(plain, "0" * 40) == []


def test_without_git_there_is_no_finding(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a source archive is linted."""
    commit(root, "a subject that is too long")
    monkeypatch.setenv("PATH", str(root))
    assert found(root, "HEAD~1") == []
