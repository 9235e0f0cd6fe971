"""Caches of a cluster in which nothing changes: the API server may send nothing for minutes, and they stay fresh."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.control_plane_flags import HOST
from support.control_plane.kubevirt_kinds import crd
from support.drivers import serving
from support.fakes.api_server import until
from support.fakes.live import LONGHORN_NAMESPACE
from support.fakes.proxy import Address, Proxy
from support.sizes import size

from webhook.component_base.client.api import Api
from webhook.component_base.options import Kubeconfig
from webhook.kube.cache.caches import Caches
from webhook.kube.informer.connection import SILENCE_SECONDS, Cause
from webhook.kube.informer.reflector import Reflector, loop_time
from webhook.kube.kinds import resources

QUIET_SECONDS: Final = size("QUIET_SECONDS")
_LOOK_SECONDS: Final = 0.1

pytestmark = [pytest.mark.soak, pytest.mark.soak_only]


def _interrupted(caches: Caches) -> Counter[Cause]:
    return sum((cache.causes for cache in caches.values()), Counter())


async def test_a_quiet_cache_stays_fresh(tmp_path: Path) -> None:
    """On an etcd without progress notifications, which would move the resourceVersion of a collection at rest.

    Each watch ends and is followed by the next one, on the same connection.
    """
    assert QUIET_SECONDS > SILENCE_SECONDS
    with (
        ControlPlane(tmp_path, scheduler=False) as plane,
        ClusterState(plane.api) as cluster,
        Proxy(Address(HOST, plane.port)) as way,
    ):
        plane.install([crd("VirtualMachine"), crd("VirtualMachineInstance")])
        cluster.become(serving.cluster())
        server = f"https://{HOST}:{way.address.port}"
        api = await Api.connect(Kubeconfig(file=plane.kubeconfig(tmp_path / "kubeconfig", plane.admin, server=server)))
        caches = Caches(resources(LONGHORN_NAMESPACE), in_pod=False)
        tasks = [asyncio.create_task(Reflector(api, cache).run()) for cache in caches.values()]
        try:
            await until(lambda: all(cache.age(loop_time()) == 0 for cache in caches.values()))
            began, connections, not_fresh = loop_time(), way.accepted, set[tuple[str, str]]()
            before = _interrupted(caches)  # the API server answers 429 while it prepares a new kind
            while loop_time() < began + QUIET_SECONDS:
                not_fresh |= {
                    (str(kind), cache.problem) for kind, cache in caches.items() if not cache.fresh(loop_time())
                }
                await asyncio.sleep(_LOOK_SECONDS)
            new_connections = way.accepted - connections
            interrupted = _interrupted(caches) - before
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await api.close()
    assert (not_fresh, interrupted, new_connections) == (set(), Counter(), 0)
