"""Fixtures of the tests of the Reflector."""

from __future__ import annotations

import pytest
from support.fakes.api_server import Cluster
from support.fakes.live import cluster_of, share_manager_on


@pytest.fixture
def cluster() -> Cluster:
    """A cluster without objects; a test module that needs objects has a fixture of its own."""
    return cluster_of(share_manager_on("a", "n1"), share_manager_on("b", "n2"))
