"""The memory of a cache: equal strings and records are stored once."""

from __future__ import annotations

import gc
import json
from typing import Any

from support.fakes.watching import RESOURCES, lists
from support.objects.builders import node

from webhook.core.scheduler.pod_info import AntiAffinity
from webhook.core.scheduler.pod_requests import Usage
from webhook.core.view import Kind
from webhook.kube.informer.connection import Request
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.records.pods import _shared, share
from webhook.kube.wire import Decoders

_EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'


def test_a_second_list_stores_no_second_object() -> None:
    """What is stored of an object that did not change stays. An object that changed is stored again."""
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


def test_the_table_of_parts_keeps_none_that_no_record_has() -> None:
    """If every pod runs on a node of its own, each has a part of its own, and takes it along."""
    gc.collect()
    before = len(_shared)
    resource = RESOURCES[Kind.VIRT_LAUNCHER_POD]
    decode = Decoders(resource.wire).object
    kept = [
        resource.transform(decode(json.dumps({"metadata": {"name": "a"}, "spec": {"nodeName": f"n-{i}"}}).encode()))
        for i in range(50)
    ]
    assert [record.pod_infos[0].on.node for record in kept] == [f"n-{i}" for i in range(50)]
    assert len({id(record.pod_infos[0].usage) for record in kept}) == 1
    grown = len(_shared) - before
    assert grown in (50, 51)  # another test's record can have the same Usage
    del kept[1:]
    assert len(_shared) == before + grown - 49


def test_parts_of_different_types_are_not_confused() -> None:
    """This holds even if their fields have the same JSON."""
    assert share(Usage()) is not share(AntiAffinity())
