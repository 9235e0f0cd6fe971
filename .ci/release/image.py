"""The image that a release names: its repository, and its digest where it was pushed already."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from checkout import NAME, VERSION, ReleaseError

# A registry and its port, then parts of a path: the repository of distribution/reference, without a tag or digest.
_REPOSITORY: Final = re.compile(r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class Image(NamedTuple):
    """A repository with its registry, and `sha256:...` or an empty string."""

    repository: str
    digest: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{VERSION}"


def image(repository: str, digest: str) -> Image:
    """The image by the values of IMAGE and DIGEST, which may be empty.

    Raises:
        ReleaseError: one of them is wrong, or IMAGE is missing beside DIGEST.
    """
    if digest and not _DIGEST.fullmatch(digest):
        raise ReleaseError(f"DIGEST is {digest!r}, expected sha256: and 64 digits of 0-9a-f, as the registry shows it")
    if digest and not repository:
        raise ReleaseError(
            f"DIGEST is given and IMAGE is not: add IMAGE=REGISTRY/{NAME}, where the image was pushed to"
        )
    if repository and not _REPOSITORY.fullmatch(repository):
        raise ReleaseError(
            f"IMAGE is {repository!r}, expected REGISTRY/{NAME} without a tag: give the digest as DIGEST"
        )
    return Image(repository or NAME, digest)


def remarks(named: Image) -> list[str]:
    """What is not as in a release, one sentence each."""
    found = []
    if not named.digest:
        found.append(f"Without DIGEST=sha256:... the image is named by its tag, {named}, which can be pushed again.")
    if named.repository == NAME:
        found.append(f"Without IMAGE=REGISTRY/{NAME} the image has no registry: nodes can't pull it.")
    return found
