"""What CHANGELOG.md says of one version, as a text of its own."""

from __future__ import annotations

import re
from typing import Final

from checkout import NAME, ReleaseError

UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## \[([^\]]+)\].*\n", re.MULTILINE)
_LINK: Final = re.compile(r"\[(?P<text>[^\]]+)\]\((?![a-z]+://)(?P<path>[^)#]+)[^)]*\)")


def release_notes(changelog: str, version: str, *, unreleased: bool = False) -> tuple[str, str]:
    """(notes, the section that they come from): the section of the version, in the form of Keep a Changelog.

    A link to a file of the repository leads nowhere from the page of a release, so the path stands in its place.
    With `unreleased`, the section *Unreleased* stands in for a version that has none.

    Raises:
        ReleaseError: there is no such section, or it is empty.
    """
    _, *parts = _HEADING.split(changelog)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    section = UNRELEASED if unreleased and version not in sections else version
    if not (text := sections.get(section, "").strip()):
        found = "an empty section" if section in sections else "no section"
        advice = f"rename [{UNRELEASED}], or try the release with UNRELEASED=1"
        raise ReleaseError(f"CHANGELOG.md has {found} [{section}], expected `## [{section}] - YYYY-MM-DD`: {advice}")
    readable = _LINK.sub(r"\g<text> (`\g<path>`)", text)
    return f"# {NAME} {version}\n\n{readable}\n", section
