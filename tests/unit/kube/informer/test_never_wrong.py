"""A hard pin is never wrong, even if caches are out of date and reads fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes.live import PATHS, RESOURCES, ROOM_UNTOLD, listed, path_of
from support.fakes.views import LONGHORN_NAMESPACE, cluster
from support.models.cluster_model import ClusterModel
from support.objects.builders import share_manager
from support.strategies.quirks import Object
from support.strategies.strategies import Scenario, review_of, scenarios
from support.waits import MAX_WAIT_SECONDS

from webhook.core.admit import Answer, admit
from webhook.core.api.meta import NamespacedName
from webhook.core.decision import Pin
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Reply
from webhook.kube.client.errors import ApiError

KINDS = {path: kind for kind, path in PATHS.items()}
STALE_SECONDS = 60.0
HALF = settings(max_examples=max(1, settings.default.max_examples // 2))  # each is a whole store
HOW = st.sampled_from(["fresh", "fresh", "stale", "outdated", "none"])
CACHED = [resource.kind for resource in ROOM_UNTOLD if resource.watched]
CACHES = st.fixed_dictionaries(dict.fromkeys(CACHED, HOW))
"""Each cache: as the cluster is; so too, but without its watch; without it, and as another cluster; or never listed."""

UNREAD_MANAGERS = [share_manager(f"h{index}") for index in range(4)]
"""A live pod is where the disk is, though its ShareManager could not be read, and might be gone."""


class Reads:
    """Stands in for client.Api: GETs of the objects of a cluster, of which some fail."""

    in_pod = False

    def __init__(self, objects: Sequence[Object], failing: set[int]) -> None:
        self.asked = 0
        self.asked_for: set[str] = set()
        self._failing = failing
        self._items: dict[str, Object] = {}
        for each in objects:
            resource, meta = RESOURCES[KINDS[path_of(each)]], each["metadata"]
            self._items[resource.item(NamespacedName(meta.get("namespace", ""), meta["name"]))] = each

    @property
    def there(self) -> set[str]:
        """The path of every object."""
        return set(self._items)

    async def get(self, path: str, query: Sequence[tuple[str, str]] = (), *, seconds: float) -> Reply:
        """As client.Api."""
        assert seconds > 0
        self.asked += 1
        self.asked_for.add(path)
        if self.asked in self._failing:
            raise ApiError("down")
        if query:
            items = [each for each in self._items.values() if path_of(each) == path]
            return Reply(200, json.dumps({"metadata": {"resourceVersion": "9"}, "items": items[:1]}).encode())
        found = self._items.get(path)
        return Reply(200, json.dumps(found).encode()) if found else Reply(404, b'{"reason":"NotFound","code":404}')


async def answer(
    scenario: Scenario, before: Sequence[Object], caches: dict[Kind, str], failing: set[int]
) -> tuple[Answer, Reads]:
    """The answer of a store in this state."""
    reads = Reads(scenario.objects, failing)
    store = ClusterCache(reads, longhorn_namespace=LONGHORN_NAMESPACE, kinds=ROOM_UNTOLD)  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    for kind, how in caches.items():
        objects = before if how == "outdated" else scenario.objects
        if how != "none":
            at = loop.time() - (0 if how == "fresh" else STALE_SECONDS)
            listed(store.caches[kind], *(each for each in objects if KINDS[path_of(each)] is kind), at=at)
    view = store.view()
    for _ in range(10):
        found = admit(review_of(scenario.pod), view, scenario.policy)
        if isinstance(found, Answer):
            return found, reads
        view = await store.read(view, found.refs, loop.time() + MAX_WAIT_SECONDS)
    raise AssertionError("core asks and asks")


def required(found: Answer) -> set[str]:
    """The nodes that the pod is bound to."""
    return set(found.decision.required) if isinstance(found.decision, Pin) else set()


@given(scenarios(), scenarios(), CACHES, st.sets(st.integers(1, 20)) | st.just(set(range(1, 99))))
def test_a_hard_pin_is_never_wrong(
    scenario: Scenario, before: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With stale caches and failed reads, a pod is pinned only to a node that serves its disk in the real cluster."""
    found, _ = asyncio.run(answer(scenario, before.objects, caches, failing))
    bound = required(found)
    note("bound" if bound else "not bound")
    model = ClusterModel([*UNREAD_MANAGERS, *scenario.objects])
    assert bound <= model.firm_nodes(scenario.pod, "vms")
    assert all(model.can_start(scenario.pod, "vms", node) for node in bound)


@HALF
@given(scenarios(), scenarios(), CACHES)
def test_where_reads_succeed_the_answer_is_that_of_the_cluster(
    scenario: Scenario, before: Scenario, caches: dict[Kind, str]
) -> None:
    """If all reads succeed, the age of the caches does not matter: stale objects are read again."""
    expected = admit(review_of(scenario.pod), cluster(*scenario.objects), scenario.policy)
    found, _ = asyncio.run(answer(scenario, before.objects, _longhorn_nodes_as_now(caches), set()))
    assert isinstance(expected, Answer)
    assert found.decision.why == expected.decision.why
    assert found.body == expected.body


def _longhorn_nodes_as_now(caches: dict[Kind, str]) -> dict[Kind, Any]:
    """Longhorn's nodes count as there where they ever were: another cluster's may differ in that."""
    now = {Kind.LONGHORN_NODE: "stale"} if caches[Kind.LONGHORN_NODE] == "outdated" else {}
    return {**caches, **now}


@HALF
@given(scenarios())
def test_fresh_caches_ask_only_for_objects_that_they_lack(scenario: Scenario) -> None:
    """The webhook GETs an object that may be too new for the cache, and never one that the cache has."""
    _, reads = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "fresh"), set()))
    assert not reads.asked_for & reads.there
