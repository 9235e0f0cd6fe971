"""The state of a VM counts only disks of its own."""

from __future__ import annotations

from typing import Any

import pytest
from support.objects.builders_kubevirt import virtual_machine
from support.objects.fleets import disk, launcher, served, the_row

from webhook.core.observe.vm_status import State
from webhook.core.reasons import Reason

Object = dict[str, Any]

HOT = virtual_machine("db01", hotpluggable=["root"])


@pytest.mark.parametrize(
    ("objects", "state", "reason"),
    [
        pytest.param([*disk("root"), *served("root", "node-a")], State.TOGETHER, "ShareManagerPod", id="together"),
        pytest.param([*disk("root"), *served("root", "node-b")], State.APART, "VmWebhookNotAsked", id="apart"),
        pytest.param([*disk("root"), *served("root", None)], State.PENDING, "ShareManagerUnscheduled", id="starts"),
        pytest.param(disk("root"), State.FREE, "ShareManagerNotFound", id="no share-manager"),
    ],
)
def test_a_hotpluggable_disk_counts_as_any_other(objects: list[Object], state: State, reason: str) -> None:
    """The virt-launcher pod does not have it; KubeVirt attaches it by an hp-volume pod."""
    found = the_row(launcher(nodeName="node-a"), objects=[*objects, HOT])
    assert (found.state, found.why.reason.code) == (state, reason)
    assert [volume.claim for volume in found.volumes] == ["root"]


SHARED_BY_TWO = [virtual_machine("db01", ["root", "tools"]), virtual_machine("other", ["tools"])]
TOOLS_AS_CDROM = [virtual_machine("db01", ["root"], cdroms=["tools"])]


@pytest.mark.parametrize(
    ("vms", "reason"),
    [
        pytest.param(SHARED_BY_TWO, Reason.SHARED_CLAIM, id="shared"),
        pytest.param(TOOLS_AS_CDROM, Reason.CDROM_CLAIM, id="a CD-ROM"),
    ],
)
@pytest.mark.parametrize(
    ("root", "state"),
    [
        pytest.param([*disk("root"), *served("root", "node-a")], State.TOGETHER, id="with its own disk"),
        pytest.param(disk("root"), State.FREE, id="with an own disk that is on no node"),
    ],
)
def test_only_disks_of_the_vms_own_make_it_apart(
    root: list[Object], state: State, vms: list[Object], reason: Reason
) -> None:
    """The other claim is shown with its node, and compared with none; so no migration brings the VM to it."""
    objects = [*root, *disk("tools"), *served("tools", "node-b"), *vms]
    found = the_row(launcher("root", "tools", nodeName="node-a"), objects=objects)
    assert found.state is state
    assert (found.volumes[1].node, found.volumes[1].together, found.volumes[1].why.reason) == ("node-b", None, reason)
    assert "node-b" not in found.share_manager_nodes
