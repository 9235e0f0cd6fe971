"""The memory of a cache: equal strings and records are stored once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.fakes.watching import RESOURCES, lists
from support.objects.builders import node, share_manager, share_manager_pod

from webhook.core.api.meta import NamespacedName
from webhook.core.view import Kind
from webhook.kube.informer.connection import Request
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.share_manager_pods import WireShareManagerPod, to_object, transform
from webhook.kube.records.virt_launchers import WirePodMeta
from webhook.kube.wire import Decoders

_EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'


@pytest.mark.parametrize("name", ["share-manager-pvc-1", "pvc-1", "share-manager", "share-manager-share-manager-x"])
def test_a_pod_is_found_by_its_own_name_alone(name: str) -> None:
    """Its volume stands for its name. A pod with the label and another name has no volume as key."""
    resource = RESOURCES[Kind.SHARE_MANAGER_POD]
    wire: Any = Decoders(resource.wire).object(json.dumps({"metadata": {"name": name}}).encode())
    objects = {resource.key_of(wire.metadata): resource.transform(wire)}
    for asked in ("share-manager-pvc-1", "pvc-1", "/pvc-1", "share-manager", "share-manager-share-manager-x"):
        key = resource.key(NamespacedName("", asked))
        assert (key in objects) == (asked == name)
        if key in objects:
            assert resource.to_object(key, objects[key]).metadata.name == name


def test_a_volume_has_one_name() -> None:
    """ShareManager and pod have the same string as cache key, and not two equal ones."""

    def kept(kind: Kind, described: dict[str, Any]) -> str:
        wire: Any = Decoders(RESOURCES[kind].wire).object(json.dumps(described).encode())
        return RESOURCES[kind].key_of(wire.metadata)

    volume = kept(Kind.SHARE_MANAGER, share_manager("pvc-of-one-name"))
    assert kept(Kind.SHARE_MANAGER_POD, share_manager_pod("pvc-of-one-name")) is volume
    built = to_object(volume, transform(WireShareManagerPod(WirePodMeta())))
    assert built.metadata.name == "share-manager-pvc-of-one-name"


def test_a_second_list_makes_no_second_record() -> None:
    """An object that did not change keeps its record. An object that changed gets a new one."""
    machine = ListWatch(RESOURCES[Kind.NODE], random=lambda: 0.5)
    same, changed = node("node-a"), node("node-b")
    same["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"] = "5"

    def answered(body: bytes, now: float) -> dict[str, Any]:
        assert isinstance(machine.next(now), Request)
        machine.opened(200, None, now)
        machine.feed(body, now)
        machine.ended(now)
        return machine.objects

    before = answered(lists(same, changed).body, 1000.0)
    answered(_EXPIRED, 1000.0)
    changed["spec"]["unschedulable"] = True
    after = answered(lists(same, changed, version=20).body, 1100.0)
    assert after is not before
    assert after["node-a"] is before["node-a"]
    assert (before["node-b"].spec.unschedulable, after["node-b"].spec.unschedulable) == (None, True)


def test_nodes_share_a_status() -> None:
    """Each time of its conditions is left out."""

    def kept(name: str, since: str) -> Any:
        described = node(name)
        described["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        wire: Any = Decoders(RESOURCES[Kind.NODE].wire).object(json.dumps(described).encode())
        return RESOURCES[Kind.NODE].transform(wire)

    assert kept("node-a", "t1").status is kept("node-b", "t2").status
