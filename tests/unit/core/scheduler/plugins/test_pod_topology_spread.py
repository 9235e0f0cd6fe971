from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from support.models.one_node import OneNodeSnapshot
from support.models.one_node_pods import asking, cycle

from webhook.core.api.affinity import TopologySpreadConstraint
from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason
from webhook.core.scheduler.plugins.pod_topology_spread import pre_filter
from webhook.core.scheduler.state.snapshot import AnySnapshot, SnapshotUnavailable

HARD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SOFT = {**HARD, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
BY_HOST = {**HARD, "topologyKey": "kubernetes.io/hostname"}


def pod(*constraints: dict[str, Any]) -> Pod:
    """A pod with these constraints."""
    return asking(topologySpreadConstraints=list(constraints))


@pytest.mark.parametrize(
    "snapshot", [OneNodeSnapshot(), SnapshotUnavailable("for a test")], ids=["counted", "not counted"]
)
@pytest.mark.parametrize(
    ("constraints", "key"),
    [
        pytest.param([], None, id="none"),
        pytest.param([SOFT], None, id="a soft one"),
        pytest.param([SOFT, HARD], "zone", id="a hard one after a soft one"),
        pytest.param([BY_HOST], "kubernetes.io/hostname", id="by the node itself"),
        pytest.param([{"topologyKey": "zone", "maxSkew": 1}], "zone", id="one that does not say what it is"),
    ],
)
def test_a_hard_spread_is_never_decided(snapshot: AnySnapshot, constraints: list[dict[str, Any]], key: str) -> None:
    """A node that is required, or a list of nodes, would change what the constraint counts."""
    assert convert(constraints, list[TopologySpreadConstraint]) is not None
    expected = None if key is None else Reason.TOPOLOGY_SPREAD.why(key=key)
    assert pre_filter(cycle(snapshot, pod(*constraints))) == expected
