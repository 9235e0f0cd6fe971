"""What else is done with a VM, and what its user types."""

from typing import Any

import pytest
from support.objects.reunite_vms import vm

from webhook.core.api.meta import Condition, Present
from webhook.core.api.virtual_machine import Backup, ChangedBlockTracking, VMIVolumeStatus


def _condition(type_: str, status: str = "True", **parts: str) -> dict[str, Any]:
    return {"conditions": [Condition(type=type_, status=status, **parts)]}


def _volume(phase: str | None, *, hotplugged: bool) -> dict[str, Any]:
    plugged = Present() if hotplugged else None
    return {"volume_status": [VMIVolumeStatus(name="disk", phase=phase, hotplug_volume=plugged)]}


def _backup(**status: bool) -> dict[str, Any]:
    return {"changed_block_tracking": ChangedBlockTracking(state="Enabled", backup_status=Backup(**status))}


@pytest.mark.parametrize(
    ("changes", "busy"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"deleted": True}, "it is being deleted", id="deleted"),
        pytest.param({"eviction_strategy": "None"}, "its evictionStrategy is None", id="evictionStrategy None"),
        pytest.param({"eviction_strategy": "External"}, "its evictionStrategy is External", id="External"),
        pytest.param({"eviction_strategy": "LiveMigrate"}, "", id="LiveMigrate"),
        pytest.param({"migrated_volumes": [Present()]}, "its volumes move to other claims", id="storage migration"),
        pytest.param(
            _condition("VolumesChange", "False"), "KubeVirt changes it: condition VolumesChange", id="VolumesChange"
        ),
        *(
            pytest.param(_condition(change), f"KubeVirt changes it: condition {change}", id=change)
            for change in ("HotMemoryChange", "HotVCPUChange", "MigrationRequired")
        ),
        pytest.param(_condition("AgentConnected"), "", id="another condition"),
        pytest.param(_backup(), "a backup of it runs", id="backup"),
        pytest.param(_backup(completed=True), "", id="backup that is done"),
        pytest.param(_backup(failed=True), "", id="backup that failed"),
        pytest.param({"copying": {"snapshot_in_progress": "s"}}, "snapshot s of it runs", id="snapshot"),
        pytest.param({"copying": {"restore_in_progress": "r"}}, "r restores it", id="restore"),
        pytest.param({"fs_freeze_status": "frozen"}, "its file systems are frozen", id="frozen"),
        pytest.param(_condition("Paused", reason="PausedByUser"), "it is paused: PausedByUser", id="paused"),
        pytest.param(_condition("Paused", "False"), "", id="not paused any more"),
        pytest.param(_volume("Pending", hotplugged=True), "volume disk is Pending", id="volume on its way"),
        pytest.param(_volume("Ready", hotplugged=True), "", id="volume that was plugged"),
        pytest.param(_volume(None, hotplugged=False), "", id="volume of the start"),
        pytest.param(
            _volume("MemoryDumpInProgress", hotplugged=False), "volume disk is MemoryDumpInProgress", id="dump"
        ),
    ],
)
def test_a_vm_is_busy(changes: dict[str, Any], busy: str) -> None:
    """One sentence, for the first cause; empty if a migration disturbs nothing."""
    assert vm(**changes).busy == busy
