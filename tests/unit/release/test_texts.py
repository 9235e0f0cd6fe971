"""What a release reads: the notes of its version from the changelog, and the packages of the lock."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from checkout import ReleaseError
from release_notes import release_notes
from sbom import Locked, locked

ROOT: Final = Path(__file__).parents[3]
CHANGELOG: Final = """\
# Changelog

Written in the form of [Keep a Changelog](https://keepachangelog.com/).

## [Unreleased]

### Added

- What comes next.

## [1.1.0] - 2026-12-24

### Fixed

- A fault ([how it
  was](docs/operate/upgrade.md#switch-off)), see [upstream](https://example.com/).

## [1.0.0] - 2026-12-01

- The first.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    """Up to the next version. A link to a file of the repository becomes its path; one to the web stays."""
    notes = (
        "# kubevirt-coschedule 1.1.0\n\n### Fixed\n\n- A fault (how it\n  was (`docs/operate/upgrade.md`)), "
        "see [upstream](https://example.com/).\n"
    )
    assert release_notes(CHANGELOG, "1.1.0") == (notes, "1.1.0")
    assert release_notes(CHANGELOG, "1.0.0") == ("# kubevirt-coschedule 1.0.0\n\n- The first.\n", "1.0.0")


def test_unreleased_stands_in_only_for_a_version_without_a_section() -> None:
    """And only where it is asked for."""
    notes = "# kubevirt-coschedule 1.2.0\n\n### Added\n\n- What comes next.\n"
    assert release_notes(CHANGELOG, "1.2.0", unreleased=True) == (notes, "Unreleased")
    assert release_notes(CHANGELOG, "1.1.0", unreleased=True) == release_notes(CHANGELOG, "1.1.0")


@pytest.mark.parametrize(
    ("changelog", "unreleased", "found"),
    [
        (CHANGELOG, False, "no section [1.2.0], expected `## [1.2.0] - YYYY-MM-DD`"),
        (CHANGELOG, False, "rename [Unreleased], or try the release with UNRELEASED=1"),
        ("## [1.2.0] - 2026-12-31\n\n## [1.1.0]\n\n- Text.\n", False, "an empty section [1.2.0]"),
        ("# Changelog\n", True, "no section [Unreleased]"),
    ],
)
def test_a_version_without_notes_is_refused(changelog: str, unreleased: bool, found: str) -> None:  # noqa: FBT001 - a column
    """With the heading that is expected."""
    with pytest.raises(ReleaseError) as refused:
        release_notes(changelog, "1.2.0", unreleased=unreleased)
    assert found in str(refused.value)


def test_each_package_of_the_lock_is_read() -> None:
    """Its version, its marker, each of its hashes, and what needs it."""
    lock = (
        "# by uv\n"
        f"one==1.0 \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n    # via\n    #   two\n"
        "    #   kubevirt-coschedule (pyproject.toml)\n"
        f"two==2.0 ; sys_platform != 'win32' \\\n    --hash=sha256:{'c' * 64}\n"
        "    # via kubevirt-coschedule (pyproject.toml)\n"
    )
    assert locked(lock) == [
        Locked("one", "1.0", "", ["a" * 64, "b" * 64], ["two", "kubevirt-coschedule"]),
        Locked("two", "2.0", "sys_platform != 'win32'", ["c" * 64], ["kubevirt-coschedule"]),
    ]


def test_every_hash_of_our_lock_is_read() -> None:
    """None is left out, and every package is needed by one of the lock or by the program."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    packages = locked(lock)
    assert sum(len(package.hashes) for package in packages) == lock.count("--hash=") > 0
    known = {package.name for package in packages} | {"kubevirt-coschedule"}
    assert {name for package in packages for name in package.needed_by} <= known


@pytest.mark.parametrize("entry", ["one @ file:///one.whl\n", "one==1.0 \\\n    # via two\n", "one>=1.0 \\\n"])
def test_an_entry_without_version_or_hash_is_refused(entry: str) -> None:
    """An SBOM never leaves out a package in silence."""
    with pytest.raises(ReleaseError, match=r"requirements.lock: 'one.*run `make lock`"):
        locked(f"two==2.0 \\\n    --hash=sha256:{'c' * 64}\n    # via one\n{entry}")
