"""What a user can do about a VM whose share-manager is on a node that excludes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.objects import builders
from support.objects.fleets import EARLY, LATER, disk, launcher, scheduled, served, the_row

from webhook.core.observe.remedy import Remedy

Object = dict[str, Any]
TAINT = "TaintNotTolerated: node node-b has the taint storage-only=true:NoSchedule, which the pod does not tolerate"
LABEL = "NodeSelectorMismatch: node node-a does not have the label storage=true of the pod's nodeSelector"
ROOM = "NoRoom: node node-b has too little of cpu"
EXCLUDED = builders.recorded("preferred", "node-b", because=TAINT)
EXCLUDES = builders.recorded("unchanged", because=LABEL, owner=builders.SHARE_MANAGER_UID)
ON_SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
CONFINED = [
    builders.persistent_volume_claim("root", volume_name="pv-root"),
    builders.persistent_volume(
        "pv-root", claim="root", handle="root", attributes={"shareManagerNodeSelector": "storage:true"}
    ),
]


def remedy(start: Mapping[str, str] | None, steering: Mapping[str, str] | None, volume: list[Object]) -> Remedy:
    """The remedy of a VM with these decisions at its start and for its share-manager's pod."""
    manager, pod = served("root", "node-b", LATER if start is None else EARLY)
    if steering is not None:
        pod["metadata"]["annotations"] |= steering
    vm = launcher("root", nodeName="node-a", annotations=start, conditions=[scheduled(LATER)])
    found = the_row(vm, objects=[*volume, manager, pod]).remedy
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("start", "steering"),
    [
        pytest.param(EXCLUDED, None, id="by the VM's pod"),
        pytest.param(None, EXCLUDES, id="by the share-manager's pod"),
    ],
)
def test_a_node_that_excludes_the_vm_needs_a_stop_or_is_named(
    start: Mapping[str, str] | None, steering: Mapping[str, str] | None
) -> None:
    """After a stop Longhorn makes the share-manager again, when the VM has its node.

    longhorn/longhorn#7872: where a class confines share-managers, neither a restart nor a migration does it.
    """
    assert remedy(start, steering, disk("root")).sentence.startswith("stop the VM until Longhorn has stopped")
    found = remedy(start, steering, CONFINED)
    assert "shareManagerNodeSelector is storage:true, and a restart or a migration changes nothing" in found.sentence
    assert not found.arguments


@pytest.mark.parametrize("volume", [CONFINED, disk("root")], ids=["confined", "not confined"])
def test_what_can_pass_is_cured_by_a_migration(volume: list[Object]) -> None:
    """A full node does not exclude the VM for good."""
    found = remedy(builders.recorded("preferred", "node-b", because=ROOM), None, volume)
    assert (found.sentence[:21], bool(found.arguments)) == ("live-migrate the VM t", True)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, "does not have the label disk=ssd", id="its nodeSelector"),
        pytest.param(
            {"affinity": builders.node_affinity(required=[ON_SSD])}, "required node affinity", id="its own affinity"
        ),
    ],
)
def test_no_migration_is_advised_where_a_rule_of_the_vm_excludes_the_node(rules: Object, told: str) -> None:
    """KubeVirt would make a pod that no node takes."""
    started = builders.recorded("preferred", "node-b", because=ROOM)
    vm = launcher("root", nodeName="node-a", annotations=started, conditions=[scheduled(LATER)], **rules)
    found = the_row(vm, objects=[*disk("root"), *served("root", "node-b", EARLY), builders.node("node-b")]).remedy
    assert found is not None
    assert found.sentence.startswith("the VM can't run on the node of its share-manager: ")
    assert told in found.sentence
    assert not found.arguments
