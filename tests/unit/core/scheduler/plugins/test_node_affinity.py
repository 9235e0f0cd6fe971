"""NodeAffinity: what a pod's nodeSelector and required node affinity say of a node's labels and name."""

from __future__ import annotations

from typing import Any

import pytest
from support.models.plugin_input import cycle_of, node_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins import node_affinity
from webhook.core.scheduler.status import PASSED, Rejected, Status

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE = builders.node("n1", labels={"zone": "a", "disk": "ssd"})
BARE = {**NODE, "metadata": {"name": "n1"}}
ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ZONE_B = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}


def lacks(label: str) -> Rejected:
    """The rejection of a node without this label."""
    return Rejected(Reason.NODE_SELECTOR_MISMATCH, {"node": "n1", "label": label})


@pytest.mark.parametrize(
    ("selector", "node", "expected"),
    [
        pytest.param(None, NODE, PASSED, id="null"),
        pytest.param({}, NODE, PASSED, id="empty"),
        pytest.param({"zone": "a"}, NODE, PASSED, id="met"),
        pytest.param({"zone": "a", "disk": "ssd"}, NODE, PASSED, id="both met"),
        pytest.param({"zone": "b"}, NODE, lacks("zone=b"), id="another value"),
        pytest.param({"zone": "a", "disk": "hdd"}, NODE, lacks("disk=hdd"), id="one of two"),
        pytest.param({"gpu": ""}, NODE, lacks("gpu="), id="an absent label is not the empty one"),
        pytest.param({"zone": "a"}, BARE, lacks("zone=a"), id="a node without labels"),
    ],
)
def test_a_node_has_every_label_of_the_node_selector(selector: Any, node: Any, expected: Status) -> None:
    """The reason names the label."""
    assert node_affinity.filter_by_labels(cycle_of(nodeSelector=selector), node_of(node)) == expected


MISMATCH = Rejected(Reason.NODE_AFFINITY_MISMATCH, {"node": "n1"})


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([ZONE_A], PASSED, id="met"),
        pytest.param([ZONE_B], MISMATCH, id="not met"),
        pytest.param([ZONE_B, ZONE_A], PASSED, id="one of two is enough"),
        pytest.param([builders.on_node("n1")], PASSED, id="its name"),
        pytest.param([builders.on_node("n2")], MISMATCH, id="another name"),
        pytest.param([{**ZONE_A, **builders.on_node("n2")}], MISMATCH, id="label and name must both match"),
        pytest.param([{}], MISMATCH, id="an empty term"),
        pytest.param([], MISMATCH, id="no terms"),
    ],
)
def test_a_node_matches_a_term_of_the_required_node_affinity(terms: list[Any], expected: Status) -> None:
    """The preferred terms do not count."""
    affinity = builders.node_affinity(required=terms, preferred={"n2": 1})
    affinity["nodeAffinity"].setdefault(REQUIRED, {"nodeSelectorTerms": terms})
    assert node_affinity.filter_node(cycle_of(affinity=affinity), node_of(NODE)) == expected


@pytest.mark.parametrize("affinity", [None, {}, {"nodeAffinity": None}, {"nodeAffinity": {}}])
def test_a_pod_without_required_node_affinity_passes(affinity: Any) -> None:
    """On every node."""
    assert node_affinity.filter_node(cycle_of(affinity=affinity), node_of(NODE)) is PASSED
