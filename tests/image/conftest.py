"""One image and its containers for all tests here. They are skipped unless `make image-test` runs them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.image.containers import ASKED, Containers, containers
from support.node import project_image


@pytest.fixture(scope="session")
def built() -> None:
    """The image of the checkout, in the store of the cache."""
    if ASKED not in os.environ:
        pytest.skip("needs root and programs of Debian: run `make image-test`")
    project_image.build()


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """A folder that the containers can read, for a container is no root: pytest's own folders are closed to it."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture(scope="session")
def image(built: None, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:  # noqa: ARG001 - it must be there
    """Containers of the image; none is left."""
    with containers(tmp_path_factory.mktemp("containers"), shared) as made:
        yield made
