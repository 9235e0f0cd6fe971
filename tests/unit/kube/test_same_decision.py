"""The same objects lead to the same answer, byte for byte, whether read from files, from caches or one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event as event_of
from hypothesis import given
from support.fakes.live import PATHS, RESOURCES, path_of
from support.fakes.views import cluster
from support.models.model_api import bookmark, event, page
from support.strategies import steering_scenarios
from support.strategies.strategies import Scenario, review_of, scenarios

from webhook.core.admit import Answer, admit
from webhook.core.decision import Pin
from webhook.core.view import ClusterView, Kind, NoObject, Ref
from webhook.kube.cache.caches import Caches
from webhook.kube.cache.view import CallView, LiveRead
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.wire import Decoders

NOW = 1000.0
KINDS = {path: kind for kind, path in PATHS.items()}


def filled(objects: dict[Kind, list[dict[str, Any]]], how: str) -> Caches:
    """The caches after they received these objects in this way; "nothing": after they received none."""
    caches = Caches(RESOURCES.values(), in_pod=False)
    for kind, cache in caches.items() if how != "nothing" else ():
        for status, body in said(objects.get(kind, []), how):
            cache.next(NOW)
            cache.opened(status, None, NOW)
            cache.feed(body, NOW)
            if how == "pages":
                cache.ended(NOW)
        assert cache.synced
    return caches


def said(objects: list[dict[str, Any]], how: str) -> Iterator[tuple[int, bytes]]:
    """A server's answers, each with its status."""
    if how == "watch":
        yield 200, b"".join(event("ADDED", each) for each in objects) + bookmark(9, end=True)
    else:
        yield 400, b"no"
        for first in objects[:-1]:
            yield 200, page([first], 9, "more")
        yield 200, page(objects[-1:], 9)


def read_one(objects: dict[Kind, list[dict[str, Any]]], ref: Ref) -> LiveRead:
    """What a GET comes to, or the list of a node's pods."""
    if ref.kind is Kind.VIRT_LAUNCHERS_ON_NODE:
        return LiveRead([_kept(Kind.VIRT_LAUNCHER_POD, each) for each in on_node(objects, *ref.key)])
    resource = RESOURCES[ref.kind]
    for each in objects.get(ref.kind, []):
        namespace = "" if resource.namespace else each["metadata"].get("namespace", "")
        if (namespace, each["metadata"]["name"]) == ref.key:
            return LiveRead(_kept(ref.kind, each))
    return LiveRead(NoObject.NOT_FOUND)


def on_node(objects: dict[Kind, list[dict[str, Any]]], namespace: str, node: str) -> Iterator[dict[str, Any]]:
    """The virt-launcher pods of a namespace that are on a node."""
    for each in objects.get(Kind.VIRT_LAUNCHER_POD, []):
        if (each["metadata"]["namespace"], each["spec"].get("nodeName")) == (namespace, node):
            yield each


def _kept(kind: Kind, each: dict[str, Any]) -> Any:
    """An object, as it is after it was read."""
    resource = RESOURCES[kind]
    wire: Any = Decoders(resource.wire).object(json.dumps(each).encode())
    return resource.to_object(resource.key_of(wire.metadata), resource.transform(wire))


def answer(scenario: Scenario, how: str) -> Answer:
    """The answer with caches that have received the scenario's objects."""
    objects: dict[Kind, list[dict[str, Any]]] = {}
    for each in scenario.objects:
        versioned = {**each, "metadata": {**each["metadata"], "resourceVersion": "5"}}
        objects.setdefault(KINDS[path_of(each)], []).append(versioned)
    caches = filled(objects, how)
    counted = cluster(*scenario.objects).snapshot()  # the snapshot of caches has tests of its own
    caches.snapshot = lambda _: counted  # type: ignore[method-assign]
    if how == "nothing" and not objects.get(Kind.LONGHORN_NODE):
        caches.longhorn_nodes_listed(NOW, absent=True)
    view = CallView(caches, NOW, {})
    for _ in range(10):
        found = asked(scenario, view)
        if not view.missing:
            return found
        view = CallView(caches, NOW, {**view.reads, **{ref: read_one(objects, ref) for ref in view.missing}})
    raise AssertionError("core asks and asks")


def asked(scenario: Scenario, view: ClusterView) -> Answer:
    """What core says."""
    return admit(review_of(scenario.pod, namespace=scenario.namespace), view, scenario.policy, scenario.entry)


def check_answer(scenario: Scenario, how: str) -> None:
    """The answer with these caches is that of the cluster in files."""
    expected = asked(scenario, cluster(*scenario.objects))
    assert isinstance(expected, Answer)
    event_of(expected.decision.why.reason.code)
    found = answer(scenario, how)
    assert found.body == expected.body
    assert found.decision.why == expected.decision.why


@pytest.mark.parametrize("how", ["watch", "pages"])
@given(scenario=scenarios())
def test_the_answer_is_that_of_files(how: str, scenario: Scenario) -> None:
    """The webhook answers for a live cluster as for the same cluster in files."""
    check_answer(scenario, how)


@given(scenario=scenarios())
def test_without_caches_no_node_is_required(scenario: Scenario) -> None:
    """Each object is read, and nobody knows who else uses the volumes."""
    decision = answer(scenario, "nothing").decision
    assert not isinstance(decision, Pin) or not decision.required


@pytest.mark.parametrize("how", ["watch", "pages"])
@given(scenario=steering_scenarios.scenarios(large=False))
def test_a_share_manager_pod_s_answer_is_that_of_files(how: str, scenario: Scenario) -> None:
    """This needs caches: without them the webhook finds neither a restored volume nor a VM without a ticket."""
    check_answer(scenario, how)


def test_a_cache_is_a_list_watch() -> None:
    """This test fills the same caches that the reflector drives."""
    assert all(isinstance(cache, ListWatch) for cache in filled({}, "watch").values())
