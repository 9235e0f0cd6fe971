"""What else is done with a VM, and where its target pod would differ from its pod."""

from typing import Any

import pytest
from msgspec import convert
from support.objects.reunite_vms import vm

from webhook.core.api.affinity import Affinity
from webhook.core.api.meta import Present
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.virtual_machine import Backup, ChangedBlockTracking, VMICondition, VMIVolumeStatus
from webhook.core.live_migration.vm import Placement


def _condition(type_: str, status: str = "True", **parts: str) -> dict[str, Any]:
    return {"conditions": [VMICondition(type=type_, status=status, **parts)]}


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
        pytest.param(_condition("HotMemoryChange"), "KubeVirt changes it: condition HotMemoryChange", id="memory"),
        pytest.param(_condition("HotVCPUChange"), "KubeVirt changes it: condition HotVCPUChange", id="CPU"),
        pytest.param(
            _condition("MigrationRequired"), "KubeVirt changes it: condition MigrationRequired", id="MigrationRequired"
        ),
        pytest.param(_condition("AgentConnected"), "", id="another condition"),
        pytest.param(_backup(), "a backup of it runs", id="backup"),
        pytest.param(_backup(completed=True), "", id="backup that is done"),
        pytest.param(_backup(failed=True), "", id="backup that failed"),
        pytest.param({"changed_block_tracking": ChangedBlockTracking(state="Enabled")}, "", id="no backup"),
        pytest.param({"copying": "snapshot s of it runs"}, "snapshot s of it runs", id="snapshot"),
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


def _pod(**spec: Any) -> Pod:
    return convert({"metadata": {"name": "p"}, "spec": spec}, Pod)


def _affinity(*keys: str, **parts: Any) -> dict[str, Any]:
    expressions = [{"key": key, "operator": "DoesNotExist"} for key in keys]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}} if keys else {}
    return {**required, **parts}


OBSOLETE = "node-labeller.kubevirt.io/obsolete-host-model"
AGENT = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
OWN = {"key": "vms", "operator": "Exists"}


@pytest.mark.parametrize(
    ("spec", "placement", "changed"),
    [
        pytest.param({}, {}, "", id="nothing"),
        pytest.param({"nodeSelector": {"kubevirt.io/schedulable": "true"}}, {}, "", id="KubeVirt's own selector"),
        pytest.param({"nodeSelector": {"a": "b"}}, {"node_selector": {"a": "b"}}, "", id="the same selector"),
        pytest.param({}, {"node_selector": {"a": "b"}}, "nodeSelector", id="a selector that came"),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, {"node_selector": {"a": "c"}}, "nodeSelector", id="a selector that changed"
        ),
        pytest.param({"affinity": _affinity(OBSOLETE)}, {}, "", id="KubeVirt's own affinity"),
        pytest.param(
            {"affinity": _affinity("own", OBSOLETE)}, {"affinity": _affinity("own")}, "", id="both affinities"
        ),
        pytest.param({"affinity": _affinity("own")}, {}, "affinity", id="an affinity that went"),
        pytest.param({}, {"affinity": _affinity("own")}, "affinity", id="an affinity that came"),
        pytest.param({"affinity": {"podAffinity": {}, "podAntiAffinity": {}}}, {}, "", id="empty parts"),
        pytest.param({"tolerations": [AGENT, OWN]}, {"tolerations": [OWN]}, "", id="the same tolerations"),
        pytest.param({"tolerations": [AGENT]}, {"tolerations": [OWN]}, "tolerations", id="a toleration that came"),
        pytest.param({"tolerations": [OWN]}, {}, "tolerations", id="a toleration that went"),
    ],
)
def test_what_of_the_placement_changed(spec: dict[str, Any], placement: dict[str, Any], changed: str) -> None:
    """KubeVirt makes the target pod from the VMI as it is now."""
    now = Placement(
        node_selector=placement.get("node_selector", {}),
        affinity=convert(placement["affinity"], Affinity) if "affinity" in placement else None,
        tolerations=convert(placement.get("tolerations", []), list[Toleration]),
    )
    assert vm(pod=_pod(**spec), placement=now).changed == changed


def test_without_its_pod_nothing_is_compared() -> None:
    """Another rule says that the pod is not there."""
    assert vm(placement=Placement(node_selector={"a": "b"})).changed == ""


def test_the_node_that_the_vm_must_leave() -> None:
    """Only as long as it is there."""
    assert vm(evacuation_node_name="a").must_leave == "a"
    assert vm(evacuation_node_name="b").must_leave is None
    assert vm().must_leave is None
