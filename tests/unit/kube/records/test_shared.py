"""Equal parts of records are one object, and the table of parts keeps none alive."""

from __future__ import annotations

import json

from support.fakes.watching import RESOURCES

from webhook.core.view import Kind
from webhook.kube.records.shared import _shared
from webhook.kube.wire import Decoders


def test_parts_of_different_kinds_are_not_confused() -> None:
    """This holds even if their fields have the same JSON."""
    claim = json.dumps({"metadata": {"name": "a"}, "status": {"phase": "Running"}}).encode()
    kept = [
        RESOURCES[kind].transform(Decoders(RESOURCES[kind].wire).object(claim))
        for kind in (Kind.PERSISTENT_VOLUME_CLAIM, Kind.SHARE_MANAGER_POD, Kind.LONGHORN_NODE, Kind.SHARE_MANAGER)
    ]
    assert len({type(each) for each in kept}) == 4


def test_the_table_of_parts_keeps_none_that_no_record_has() -> None:
    """If every object is different, each has a part of its own, and takes it along."""
    before = len(_shared)
    resource = RESOURCES[Kind.SHARE_MANAGER]
    decode = Decoders(resource.wire).object
    kept = [
        resource.transform(decode(json.dumps({"metadata": {"name": "a"}, "status": {"ownerID": f"n-{i}"}}).encode()))
        for i in range(50)
    ]
    assert [record.status.owner_id for record in kept] == [f"n-{i}" for i in range(50)]
    assert len(_shared) == before + 50
    del kept[1:]
    assert len(_shared) == before + 1
