"""Equal parts of pods' records are one object, and the table of parts keeps none alive."""

from __future__ import annotations

import gc
import json

from support.fakes.watching import RESOURCES

from webhook.core.scheduler.pod_info import AntiAffinity
from webhook.core.scheduler.pod_requests import Usage
from webhook.core.view import Kind
from webhook.kube.records.pods import _shared, share
from webhook.kube.wire import Decoders


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
