"""A cluster whose caches are out of date or empty, and whose reads fail: what `serve` answers there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from support.fakes.live import PATHS, RESOURCES, listed, path_of
from support.fakes.views import LONGHORN_NAMESPACE, cluster
from support.models.outcomes import ask
from support.strategies.affinity_shapes import Object
from support.strategies.strategies import Scenario
from support.waits import MAX_WAIT_SECONDS

from webhook.component_base.client.api import Reply
from webhook.component_base.client.transport import ApiError
from webhook.core.admit import Answer
from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache

HALF: Final = settings(max_examples=max(1, settings.default.max_examples // 2))  # each is a whole store
CACHED: Final = [resource.kind for resource in RESOURCES.values() if resource.watched]
CACHES: Final = st.fixed_dictionaries(
    dict.fromkeys(CACHED, st.sampled_from(["fresh", "fresh", "stale", "outdated", "none"]))
)
"""Each cache: as the cluster is; the same without its watch; without its watch and as another cluster; never listed."""

_KINDS: Final = {path: kind for kind, path in PATHS.items()}
_STALE_SECONDS: Final = 60.0
_ROUNDS_MAX: Final = 10


class FaultyReads:
    """Stands in for client.Api: reads of the objects of a cluster, of which some fail.

    Attributes:
        asked: the path of each read.
        lists: the number of reads that list the pods of one node.
    """

    in_pod = False

    def __init__(self, objects: Sequence[Object], failing: set[int]) -> None:
        """`failing` has the numbers of the reads that fail; the first read has the number 1."""
        self.asked: list[str] = []
        self.lists = 0
        self._failing = failing
        self._objects = objects
        self._items = {self._path(each): each for each in objects}

    async def get(self, path: str, query: Sequence[tuple[str, str]] = (), *, seconds: float) -> Reply:
        """As client.Api."""
        assert seconds > 0
        self.asked.append(path)
        if len(self.asked) in self._failing:
            raise ApiError("down")
        if query:
            items = self._on_node(path, dict(query))
            return Reply(200, json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode())
        found = self._items.get(path)
        return Reply(200, json.dumps(found).encode()) if found else Reply(404, b'{"reason":"NotFound","code":404}')

    def existing(self) -> list[str]:
        """Return the paths among `asked` that lead to an object of the cluster."""
        return [path for path in self.asked if path in self._items]

    def _path(self, each: Object) -> str:
        meta = each["metadata"]
        return RESOURCES[_KINDS[path_of(each)]].item(NamespacedName(meta.get("namespace", ""), meta["name"]))

    def _on_node(self, path: str, query: dict[str, str]) -> list[Object]:
        self.lists += 1
        node = query["fieldSelector"].removeprefix("spec.nodeName=")
        pods = [each for each in self._objects if path_of(each) == PATHS[Kind.VIRT_LAUNCHER_POD]]
        return [
            each
            for each in pods
            if path == f"/api/v1/namespaces/{each['metadata']['namespace']}/pods"
            and each["spec"].get("nodeName") == node
        ]


async def answer(
    scenario: Scenario, before: Sequence[Object], caches: dict[Kind, str], failing: set[int]
) -> tuple[Answer, FaultyReads]:
    """Return the answer for the scenario's pod, and the reads that it took.

    Args:
        scenario: the pod, and the cluster as it is.
        before: the objects that an outdated cache has.
        caches: the state of each cache, as in CACHES.
        failing: the numbers of the reads that fail.
    """
    reads, loop = FaultyReads(scenario.objects, failing), asyncio.get_running_loop()
    store = ClusterCache(reads, longhorn_namespace=LONGHORN_NAMESPACE, kinds=RESOURCES.values())  # type: ignore[arg-type]
    counted = cluster(*scenario.objects).snapshot()  # the snapshot of caches has tests of its own
    store.caches.snapshot = lambda _: counted  # type: ignore[method-assign]
    for kind, how in caches.items():
        objects = before if how == "outdated" else scenario.objects
        if how != "none":
            at = loop.time() - (0 if how == "fresh" else _STALE_SECONDS)
            listed(store.caches[kind], *(each for each in objects if _KINDS[path_of(each)] is kind), at=at)
    view = store.view()
    for _ in range(_ROUNDS_MAX):
        found = ask(scenario.pod, scenario, view)
        if not view.missing:
            return found, reads
        view = await store.read(view, tuple(view.missing), loop.time() + MAX_WAIT_SECONDS)
    raise AssertionError(f"core needs more objects after {_ROUNDS_MAX} rounds of reads")
