"""An API server for a test's `cluster`, and the program's ways to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.fakes.api_server import ApiServer, Cluster
from support.fakes.live import LONGHORN_NAMESPACE, cluster_of, connected

from webhook.component_base.client.api import Api
from webhook.kube.cache.cluster_cache import ClusterCache


@pytest.fixture
def cluster() -> Cluster:
    """A cluster without objects; a test module that needs objects has a fixture of its own."""
    return cluster_of()


@pytest.fixture
async def server(cluster: Cluster) -> AsyncIterator[ApiServer]:
    """An API server for the cluster."""
    async with ApiServer(cluster) as started:
        yield started


@pytest.fixture
async def api(server: ApiServer, tmp_path: Path) -> AsyncIterator[Api]:
    """A way to it."""
    async with connected(server, tmp_path) as found:
        yield found


@pytest.fixture
def store(api: Api) -> ClusterCache:
    """A cluster cache that has received nothing yet."""
    return ClusterCache(api, longhorn_namespace=LONGHORN_NAMESPACE)
