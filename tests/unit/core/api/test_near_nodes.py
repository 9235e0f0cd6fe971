"""Which nodes a pod prefers by pod affinity to Longhorn's instance-manager pods: only the webhook's own terms count."""

from typing import Any

import pytest
from msgspec import convert

from webhook.core.api.affinity import PREFERRED
from webhook.core.api.longhorn import near, near_nodes
from webhook.core.api.pod import PodSpec

_OURS = near("node-a", 100)
_TERM = _OURS["podAffinityTerm"]


def test_each_term_of_ours_names_its_node() -> None:
    """In the order of the terms, whatever their weights."""
    assert list(near_nodes([near("node-a", 100), near("node-b", 1)])) == ["node-a", "node-b"]


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(None, id="null"),
        pytest.param("text", id="a text"),
        pytest.param({}, id="empty"),
        pytest.param({"podAffinityTerm": _TERM}, id="without a weight"),
        pytest.param({"weight": 1, "podAffinityTerm": {"topologyKey": "x"}}, id="without a selector"),
        pytest.param({**_OURS, "podAffinityTerm": {**_TERM, "namespaces": ["vms"]}}, id="of another namespace"),
        pytest.param({**_OURS, "podAffinityTerm": {**_TERM, "topologyKey": "zone"}}, id="of another topology"),
    ],
)
def test_a_term_of_somebody_else_names_no_node(term: Any) -> None:
    """The terms after it still count."""
    assert list(near_nodes([term, near("node-b", 50)])) == ["node-b"]


@pytest.mark.parametrize(
    ("affinity", "nodes"),
    [
        pytest.param({"podAffinity": {PREFERRED: [_OURS]}}, ["node-a"], id="ours"),
        pytest.param({"podAffinity": {}}, [], id="no preferred terms"),
        pytest.param({}, [], id="no pod affinity"),
        pytest.param(None, [], id="no affinity"),
    ],
)
def test_a_pod_has_the_nodes_of_its_terms(affinity: dict[str, Any] | None, nodes: list[str]) -> None:
    """Each part of the affinity can be absent."""
    assert list(convert({"affinity": affinity}, PodSpec).near_nodes) == nodes
