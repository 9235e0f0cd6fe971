"""A share-manager pod is steered to nodes of VMs only, and never pinned, even if caches are out of date or missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes.live import PATHS, RESOURCES, ROOM_UNTOLD, listed, path_of
from support.fakes.views import LONGHORN_NAMESPACE
from support.strategies.consumer_shapes import VOLUME, cold_starts
from support.strategies.quirks import Object
from support.strategies.strategies import Scenario, review_of
from support.waits import MAX_WAIT_SECONDS

from webhook.core.admit import Answer, Entry, admit
from webhook.core.api.meta import NamespacedName
from webhook.core.api.names import is_node_name
from webhook.core.decision import Leave, Pin, Steer
from webhook.core.reasons import Reason
from webhook.core.view import Kind
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.kube.client.api import Reply
from webhook.kube.client.errors import ApiError

CACHED: Final = [resource.kind for resource in ROOM_UNTOLD if resource.watched]
KINDS: Final = {path: kind for kind, path in PATHS.items()}
HOW: Final = st.sampled_from(["fresh", "fresh", "stale", "outdated", "none"])
TRUE: Final = st.sampled_from(["fresh", "fresh", "stale", "none"])
STALE_SECONDS: Final = 60.0
TICKETS: Final = RESOURCES[Kind.VOLUME_ATTACHMENT].item(NamespacedName("", VOLUME))
HALF: Final = settings(max_examples=max(1, settings.default.max_examples // 2))  # each is a whole store
MOST: Final = 1 + 2 * 4
"""Reads beside those of objects that a fresh cache has not: the tickets; of two namespaces, the pods of four nodes."""


class Reads:
    """Stands in for client.Api, with the objects of a cluster; some reads fail. `asked`: each path."""

    in_pod = False

    def __init__(self, objects: Sequence[Object], failing: set[int]) -> None:
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
            items = self._on_node(path, dict(query)) if "fieldSelector" in dict(query) else self._first(path)
            return Reply(200, json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}).encode())
        found = self._items.get(path)
        return Reply(200, json.dumps(found).encode()) if found else Reply(404, b'{"reason":"NotFound","code":404}')

    def has(self, path: str) -> bool:
        """Whether there is such an object."""
        return path in self._items

    def _path(self, each: Object) -> str:
        meta = each["metadata"]
        return RESOURCES[KINDS[path_of(each)]].item(NamespacedName(meta.get("namespace", ""), meta["name"]))

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

    def _first(self, path: str) -> list[Object]:
        return [each for each in self._objects if path_of(each) == path][:1]


async def answer(
    scenario: Scenario, before: Sequence[Object], caches: dict[Kind, str], failing: set[int]
) -> tuple[Answer, Reads]:
    """The answer of a store in this state."""
    reads, loop = Reads(scenario.objects, failing), asyncio.get_running_loop()
    store = ClusterCache(reads, longhorn_namespace=LONGHORN_NAMESPACE, kinds=ROOM_UNTOLD)  # type: ignore[arg-type]
    for kind, how in caches.items():
        objects = before if how == "outdated" else scenario.objects
        if how != "none":
            at = loop.time() - (0 if how == "fresh" else STALE_SECONDS)
            listed(store.caches[kind], *(each for each in objects if KINDS[path_of(each)] is kind), at=at)
    view = store.view()
    for _ in range(10):
        found = admit(review_of(scenario.pod, namespace=LONGHORN_NAMESPACE), view, scenario.policy, Entry.SHARE_MANAGER)
        if isinstance(found, Answer):
            return found, reads
        view = await store.read(view, found.refs, loop.time() + MAX_WAIT_SECONDS)
    raise AssertionError("core asks and asks")


def wanted_on(objects: Sequence[Object]) -> set[str]:
    """The nodes that a VM which asks for it is on, is bound for, or may be on, as a ticket tells; by plain looks."""
    claims = set()
    for each in objects:
        csi = each["spec"].get("csi") or {} if each["kind"] == "PersistentVolume" else {}
        if (csi.get("driver"), csi.get("volumeHandle")) == ("driver.longhorn.io", VOLUME):
            claim = each["spec"].get("claimRef") or {}
            claims.add((claim.get("namespace", ""), claim.get("name")))
    found: set[str] = set()
    for pod in objects:
        if pod["kind"] == "Pod" and _asks(pod) and claims & _claims(pod):
            node = pod["spec"].get("nodeName")
            found |= {node} if node else _pinned(pod) | _ticketed(objects)
    return {node for node in found if is_node_name(node)}


def _asks(pod: Object) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return annotations.get("kubevirt-scheduler/co-schedule") in ("true", "required", "preferred")


def _claims(pod: Object) -> set[tuple[str, str]]:
    sources = [volume.get("persistentVolumeClaim") for volume in pod["spec"].get("volumes") or []]
    return {(pod["metadata"]["namespace"], source["claimName"]) for source in sources if source}


def _pinned(pod: Object) -> set[str]:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or []
    return {value for term in terms for field in term.get("matchFields") or [] for value in field["values"]}


def _ticketed(objects: Sequence[Object]) -> set[str]:
    attachments = [each["spec"].get("attachmentTickets") for each in objects if each["kind"] == "VolumeAttachment"]
    tickets = [ticket for each in attachments for ticket in (each or {}).values()]
    return {ticket["nodeID"] for ticket in tickets if ticket["type"] == "csi-attacher" and ticket["nodeID"]}


@given(
    cold_starts(),
    cold_starts(),
    st.fixed_dictionaries(dict.fromkeys(CACHED, HOW)),
    st.sets(st.integers(1, 20)) | st.just(set(range(1, 99))),
)
def test_a_share_manager_pod_is_never_pinned(
    scenario: Scenario, before: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With stale caches and failed reads, the result is a preference or nothing, and the webhook always answers."""
    found, reads = asyncio.run(answer(scenario, before.objects, caches, failing))
    decision = found.decision
    note(type(decision).__name__)
    assert isinstance(decision, Steer | Leave), decision
    assert decision.why.reason not in (Reason.INTERNAL_ERROR, Reason.PATCH_NOT_PROVEN)
    if isinstance(decision, Pin):
        assert (decision.required, decision.shortlist) == ((), ())
    assert reads.lists <= MOST


@given(cold_starts(), st.fixed_dictionaries(dict.fromkeys(CACHED, TRUE)), st.sets(st.integers(1, 20), max_size=3))
def test_a_share_manager_pod_is_steered_to_nodes_of_vms_only(
    scenario: Scenario, caches: dict[Kind, str], failing: set[int]
) -> None:
    """With complete caches or with none, each preferred node is one that a VM needs."""
    found, _ = asyncio.run(answer(scenario, (), caches, failing))
    nodes = found.decision.nodes if isinstance(found.decision, Pin) else ()
    note("steered" if nodes else found.decision.why.reason.code)
    assert set(nodes) <= wanted_on(scenario.objects)


@HALF
@given(cold_starts())
def test_fresh_caches_ask_for_tickets_and_objects_that_they_lack(scenario: Scenario) -> None:
    """The webhook reads one existing object, and only if no VM has a node: the volume's VolumeAttachment."""
    found, reads = asyncio.run(answer(scenario, (), dict.fromkeys(CACHED, "fresh"), set()))
    there = [path for path in reads.asked if reads.has(path)]
    assert there in ([], [TICKETS])
    on_a_node = {Reason.CONSUMER_ON_NODE, Reason.CONSUMER_LEAVING, Reason.CONSUMER_PINNED}
    if found.decision.why.reason in on_a_node and TICKETS not in reads.asked:
        assert reads.lists == 0
    note(f"{len(there)} there, {reads.lists} lists")
