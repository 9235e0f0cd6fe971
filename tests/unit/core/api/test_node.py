"""What is read of a node's conditions."""

from __future__ import annotations

from webhook.core.api.meta import Condition, ObjectMeta
from webhook.core.api.node import Node, NodeStatus
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
