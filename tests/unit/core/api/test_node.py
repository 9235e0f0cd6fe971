"""What is read of a node's conditions."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from webhook.core.api.meta import Condition, ObjectMeta
from webhook.core.api.node import CSINodeSpec, Node, NodeStatus, csi_drivers_of
from webhook.kube.records import objects


def test_of_two_conditions_of_a_type_the_first_counts() -> None:
    """As for Kubernetes' own controllers, of the node as it is and as a cache stores it."""
    conditions = [Condition(type="Ready", status=status, last_transition_time="t") for status in ("False", "True")]
    for first, ready, since in ((0, False, None), (1, True, "t")):
        node = Node(
            metadata=ObjectMeta(name="n"), status=NodeStatus(conditions=conditions[first:] + conditions[:first])
        )
        stored = objects.node(node).status
        assert stored is not None
        assert (node.status and node.status.ready, stored.ready, node.ready_since) == (ready, ready, since)


LONGHORN, CEPH = "driver.longhorn.io", "rbd.csi.ceph.com"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        pytest.param(None, {}, id="no CSINode"),
        pytest.param({}, {}, id="no drivers"),
        pytest.param({"drivers": None}, {}, id="null drivers"),
        pytest.param(
            {"drivers": [{"name": LONGHORN}, {"name": CEPH, "allocatable": {}}]},
            {LONGHORN: None, CEPH: None},
            id="no limits",
        ),
        pytest.param(
            {
                "drivers": [
                    {"name": LONGHORN, "allocatable": {"count": 0}},
                    {"name": CEPH, "allocatable": {"count": 24}},
                ]
            },
            {LONGHORN: 0, CEPH: 24},
            id="limits, and zero is one",
        ),
        pytest.param({"drivers": [{"allocatable": {"count": 1}}]}, {}, id="of no driver"),
    ],
)
def test_a_csinode_tells_drivers_and_limits(spec: dict[str, Any] | None, found: dict[str, int | None]) -> None:
    """A driver without a limit is one."""
    assert csi_drivers_of(convert(spec, CSINodeSpec | None)) == found
