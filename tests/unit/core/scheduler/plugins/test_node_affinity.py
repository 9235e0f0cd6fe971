from __future__ import annotations

from typing import Any, Final

import pytest
from support.models.plugin_input import cycle_of, node_of
from support.objects import builders

from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins.node_affinity import why_labels_mismatch, why_terms_mismatch

ZONE_A: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ZONE_B: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
NODE: Final = node_of(builders.node("n1", labels={"zone": "a", "disk": "nvme"}))


@pytest.mark.parametrize(
    ("selector", "label"),
    [
        pytest.param(None, None, id="none"),
        pytest.param({"disk": "nvme", "zone": "a"}, None, id="all labels"),
        pytest.param({"disk": "nvme", "zone": "b"}, "zone=b", id="another value"),
        pytest.param({"disk": "nvme", "gpu": ""}, "gpu=", id="a label that the node lacks"),
    ],
)
def test_a_node_has_each_label_of_the_node_selector(selector: dict[str, str] | None, label: str | None) -> None:
    """The reason names the first that it lacks."""
    why = why_labels_mismatch(cycle_of(nodeSelector=selector).pod.spec, NODE)
    assert why == (None if label is None else Reason.NODE_SELECTOR_MISMATCH.why(node="n1", label=label))


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param(None, True, id="no required node affinity"),
        pytest.param([ZONE_B, ZONE_A], True, id="one of the terms"),
        pytest.param([ZONE_B], False, id="no term"),
        pytest.param([builders.on_node("n1")], True, id="its name"),
        pytest.param([builders.on_node("n2")], False, id="another name"),
    ],
)
def test_a_term_of_the_required_node_affinity_matches(terms: list[Any] | None, *, matches: bool) -> None:
    """Labels and name are asked for."""
    affinity = None if terms is None else builders.node_affinity(required=terms)
    why = why_terms_mismatch(cycle_of(affinity=affinity).pod.spec, NODE)
    assert why == (None if matches else Reason.NODE_AFFINITY_MISMATCH.why(node="n1"))
