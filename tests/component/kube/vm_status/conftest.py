"""Fixtures of the tests of the VMStatusTracker."""

from __future__ import annotations

import pytest
from support.fakes.api_server import Cluster
from support.fakes.live import cluster_of
from support.objects.fleets import LATER, Clock, disk, served
from support.objects.fleets import running_pod as launcher

from webhook.core.opt_in import Policy
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.vm_status import VMStatusTracker


@pytest.fixture
def cluster() -> Cluster:
    """A cluster without objects; a test module that needs objects has a fixture of its own."""
    return cluster_of(
        *disk("root"),
        *served("root", "node-a", LATER),
        *disk("page"),
        *served("page", "node-b", LATER),
        launcher("db", "root"),
        launcher("web", "page"),
    )


@pytest.fixture
def clock() -> Clock:
    """A clock that begins at noon."""
    return Clock()


@pytest.fixture
def rows(store: ClusterCache, clock: Clock) -> VMStatusTracker:
    """The rows of the store's caches."""
    return VMStatusTracker(store.caches, Policy(), wall=clock)
