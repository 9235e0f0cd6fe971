"""Equal parts of records are one object, and the table of parts is bounded."""

from __future__ import annotations

import json

import pytest
from support.fakes.watching import RESOURCES

from webhook.core.view import Kind
from webhook.kube.client.wire import Decoders
from webhook.kube.records import shared
from webhook.kube.records.shared import _shared


def test_parts_of_different_kinds_are_not_confused() -> None:
    """This holds even if their fields have the same JSON."""
    claim = json.dumps({"metadata": {"name": "a"}, "status": {"phase": "Running"}}).encode()
    kept = [
        RESOURCES[kind].transform(Decoders(RESOURCES[kind].wire).object(claim))
        for kind in (Kind.PERSISTENT_VOLUME_CLAIM, Kind.SHARE_MANAGER_POD, Kind.LONGHORN_NODE, Kind.SHARE_MANAGER)
    ]
    assert len({type(each) for each in kept}) == 4


def test_odd_clusters_cost_memory_only_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every object is different, the table of parts is cleared at its limit, and records stay right."""
    monkeypatch.setattr(shared, "_SHARED_MAX", 10)
    resource = RESOURCES[Kind.SHARE_MANAGER]
    decode = Decoders(resource.wire).object
    kept = [
        resource.transform(decode(json.dumps({"metadata": {"name": "a"}, "status": {"ownerID": f"n{i}"}}).encode()))
        for i in range(50)
    ]
    assert [status.owner_id for status in kept] == [f"n{i}" for i in range(50)]
    assert len(_shared) <= 12
