"""The memory of a cache: equal strings and records are stored once."""

from __future__ import annotations

from typing import Any

from support.fakes.watching import RESOURCES, lists
from support.objects.builders import node

from webhook.core.view import Kind
from webhook.kube.informer.connection import Request
from webhook.kube.informer.list_watch import ListWatch

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
