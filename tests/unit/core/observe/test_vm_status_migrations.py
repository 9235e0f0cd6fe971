"""The VM is where its VirtualMachineInstance says: the target pod of a failed migration can stay Running for hours."""

from __future__ import annotations

import pytest
from support.objects.builders import OWNER_UID
from support.objects.builders_kubevirt import virtual_machine_instance
from support.objects.fleets import EARLY, LATER, disk, launcher, served, the_row

from webhook.core.observe.vm_status import State

TARGET = {"kubevirt.io/migrationJobUID": "m"}
SOURCE_POD = launcher("root", name="virt-launcher-db01-source", nodeName="node-b", created=EARLY)
TARGET_POD = launcher("root", name="virt-launcher-db01-target", nodeName="node-a", created=LATER, labels=TARGET)


@pytest.mark.parametrize(
    ("node", "on", "state"),
    [
        pytest.param("node-b", "node-b", State.APART, id="the migration failed, or is under way"),
        pytest.param("node-a", "node-a", State.TOGETHER, id="the migration is done"),
        pytest.param("node-c", "node-a", State.TOGETHER, id="no pod is seen on the node"),
        pytest.param("No Node", "node-a", State.TOGETHER, id="no name of a node"),
        pytest.param(None, "node-a", State.TOGETHER, id="the instance names no node"),
    ],
)
def test_the_node_of_the_instance_tells_in_which_pod_the_vm_is(node: str | None, on: str, state: State) -> None:
    """Without it the newest pod does."""
    instance = virtual_machine_instance("db01", ["root"], uid=OWNER_UID, node=node)
    objects = [*disk("root"), *served("root", "node-a"), instance]
    row = the_row(SOURCE_POD, TARGET_POD, objects=objects)
    assert (row.node, row.state, row.migrating) == (on, state, True)
