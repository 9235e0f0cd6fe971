"""What a release reads from the changelog: the notes of its version."""

from __future__ import annotations

from typing import Final

import pytest
from checkout import ReleaseError
from release_notes import release_notes

CHANGELOG: Final = """\
# Changelog

Written in the form of [Keep a Changelog](https://keepachangelog.com/).

## [Unreleased]

### Added

- What comes next.

## [1.1.0] - 2026-12-24

### Fixed

- A fault ([how it
  was](docs/install/kustomize.md#switch-off)), see [upstream](https://example.com/).

## [1.0.0] - 2026-12-01

- The first.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    """Up to the next version. A link to a file of the repository becomes its path; one to the web stays."""
    notes = (
        "# kubevirt-coschedule 1.1.0\n\n### Fixed\n\n- A fault (how it\n  was (`docs/install/kustomize.md`)), "
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
