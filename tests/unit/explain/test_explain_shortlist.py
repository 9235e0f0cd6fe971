"""explain on a large cluster: the short list of a share-manager pod."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest
from msgspec import convert, to_builtins
from support.scenarios import cold_start
from support.scenarios.cold_start import created, explain, explained

from webhook.core.api.pod import Pod
from webhook.core.patch.decision_patch import as_created

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}


def large(count: int = 120) -> list[dict[str, Any]]:
    """The cold start on a cluster with this number of further nodes."""
    return [*cold_start.cluster(), *cold_start.nodes(*(f"more-{index:03}" for index in range(count)))]


OWN_ROWS: dict[str, dict[str, Any] | None] = {
    "no affinity": None,
    "a StorageClass's topology": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE]}}},
    "terms of its own": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE, ZONE, ZONE]}}},
}


@pytest.mark.parametrize("own", OWN_ROWS.values(), ids=OWN_ROWS)
def test_a_short_list_is_counted_named_and_taken_out_again(own: dict[str, Any] | None) -> None:
    """Text has its size, JSON every name. A running pod is explained as Longhorn created it, without the list."""
    pod = created(affinity=own) if own else created()
    found, text = explained(pod, large()), explain(pod, large()).out
    shortlist = found["shortlist"]
    assert (shortlist[0], len(set(shortlist))) == ("node-b", len(shortlist))
    assert (
        f"  Short list:  any of {len(shortlist)} nodes, so that kube-scheduler scores each of them (-o json lists them;"
        in text
    )
    assert len(text.splitlines()) < 40
    placed = jsonpatch.JsonPatch(found["patch"]).apply(pod)
    assert len(placed["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]) >= len(shortlist)
    assert len(json.dumps(placed)) > len(json.dumps(pod)) + 1000
    assert to_builtins(as_created(convert(placed, Pod))).get("spec").get("affinity") == own
