"""Fixtures of the tests of the client."""

from __future__ import annotations

import pytest
from support.fakes.api_server import Cluster
from support.fakes.live import SHARE_MANAGER, cluster_of


@pytest.fixture
def cluster() -> Cluster:
    """A cluster without objects; a test module that needs objects has a fixture of its own."""
    return cluster_of(SHARE_MANAGER)
