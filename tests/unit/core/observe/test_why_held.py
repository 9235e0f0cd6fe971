"""Why KubeVirt can move a VM nowhere: its node is lost, or its pod is being deleted."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects import builders
from support.objects.fleets import disk, launcher, served, the_row

from webhook.core.observe.vm_status import State
from webhook.core.reasons import Reason

Object = dict[str, Any]
OBJECTS = [*disk("root"), *served("root", "node-b"), builders.node("node-b")]


@pytest.mark.parametrize(
    ("nodes", "deleting", "held"),
    [
        pytest.param([builders.node("node-a")], False, None, id="Ready"),
        pytest.param([builders.node("node-a", cordoned=True)], False, None, id="cordoned"),
        pytest.param([builders.node("node-a", ready="Unknown")], False, Reason.VM_NODE_NOT_READY, id="lost"),
        pytest.param([builders.node("node-a", ready=None)], False, Reason.VM_NODE_NOT_READY, id="without a condition"),
        pytest.param(
            [builders.node("node-a", ready="False")], True, Reason.VM_NODE_NOT_READY, id="lost and terminating"
        ),
        pytest.param([builders.node("node-a")], True, Reason.VM_POD_TERMINATING, id="terminating"),
        pytest.param([], False, None, id="not described"),
    ],
)
def test_a_vm_on_a_lost_node_can_be_moved_nowhere(nodes: list[Object], held: Reason | None, *, deleting: bool) -> None:
    """The remedy is to free it. Longhorn's state of the node does not count: KubeVirt does not ask Longhorn."""
    found = the_row(launcher("root", nodeName="node-a", deleting=deleting), objects=[*OBJECTS, *nodes])
    assert found.state is State.APART
    assert (found.held and found.held.reason) == held
    assert found.remedy is not None
    assert ("out-of-service" in found.remedy.sentence, bool(found.remedy.arguments)) == (bool(held), not held)
