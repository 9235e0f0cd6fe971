"""What reunite reads of a VirtualMachineInstance, of a migration, and of KubeVirt's own object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from webhook.core.reunite.limits import KubeVirtLimits
from webhook.core.reunite.migration import Migration
from webhook.reunite import migrations, vmis
from webhook.reunite.facts import kubevirt_limits

AT = "2026-01-02T03:04:05Z"


def vmi(metadata: dict[str, Any] | None = None, **status: Any) -> vmis.VMIRecord:
    """The record of a VMI with this metadata and status."""
    named = {"name": "db", "namespace": "vms", "uid": "u1", "creationTimestamp": AT, **(metadata or {})}
    found = msgspec.json.encode({"metadata": named, "spec": {"domain": {}}, "status": status})
    return vmis.transform(msgspec.json.decode(found, type=vmis.WireVMI))


def condition(status: str) -> dict[str, Any]:
    """The condition LiveMigratable."""
    return {"type": "LiveMigratable", "status": status, "reason": "DisksNotLiveMigratable", "message": "disk is RWO"}


def test_a_vmi_is_read_with_all_that_the_rules_ask_for() -> None:
    """Its start, its phase, its annotation, and the node that it must leave."""
    annotations = {"kubevirt-scheduler/reunite": "false"}
    found = vmi({"annotations": annotations}, phase="Running", evacuationNodeName="n1", conditions=[condition("True")])
    assert found == vmis.VMIRecord(
        uid="u1", started=AT, phase="Running", reunite="false", unmigratable="", evacuates="n1"
    )


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        pytest.param([condition("True")], "", id="can be migrated"),
        pytest.param([condition("False")], "DisksNotLiveMigratable: disk is RWO", id="can't be migrated"),
        pytest.param([condition("Unknown")], "DisksNotLiveMigratable: disk is RWO", id="unknown"),
        pytest.param([{"type": "Ready", "status": "True"}], "it has no condition LiveMigratable yet", id="not judged"),
        pytest.param(None, "it has no condition LiveMigratable yet", id="no conditions"),
    ],
)
def test_only_a_vmi_that_kubevirt_calls_migratable_is_so(conditions: list[Any] | None, why: str) -> None:
    """A VMI that virt-handler has not judged is none."""
    assert vmi(conditions=conditions).unmigratable == why


def test_a_vmi_without_status_and_annotations_is_read() -> None:
    """As it is right after its creation."""
    wire = msgspec.json.decode(b'{"metadata": {"name": "db"}}', type=vmis.WireVMI)
    found = vmis.transform(wire)
    assert (found.phase, found.reunite, found.evacuates) == ("", None, None)


def read(**parts: Any) -> Migration:
    """The record of a migration with these parts beside its name."""
    metadata = {"name": "m1", "namespace": "vms", "uid": "u1", "resourceVersion": "7", "creationTimestamp": AT}
    found = {"metadata": {**metadata, **parts.pop("metadata", {})}, "spec": {"vmiName": "db"}, **parts}
    return migrations.transform(msgspec.json.decode(msgspec.json.encode(found), type=migrations.WireMigration))


BARE = Migration(namespace="vms", name="m1", uid="u1", vmi="db", created=AT, resource_version="7")


def test_a_migration_that_nobody_has_begun_has_no_phase() -> None:
    """It is another's, without a target of its own."""
    assert read() == BARE


def test_a_migration_of_ours_that_ended_is_read() -> None:
    """With its nodes, the time at which it ended, and the count that it carries."""
    found = read(
        metadata={
            "labels": {"kubevirt-scheduler/reunite": "true"},
            "annotations": {"kubevirt-scheduler/moved-away": "1"},
        },
        spec={"vmiName": "db", "addedNodeSelector": {"kubernetes.io/hostname": "n2"}},
        status={
            "phase": "Succeeded",
            "phaseTransitionTimestamps": [
                {"phase": "Running", "phaseTransitionTimestamp": "2026-01-02T03:05:00Z"},
                {"phase": "Succeeded", "phaseTransitionTimestamp": "2026-01-02T03:06:00Z"},
            ],
            "migrationState": {"sourceNode": "n1", "targetNode": "n2"},
        },
    )
    assert (found.ours, found.names_target, found.moved_away) == (True, True, 1)
    assert (found.phase, found.ended) == ("Succeeded", "2026-01-02T03:06:00Z")
    assert (found.source_node, found.target_node) == ("n1", "n2")


@pytest.mark.parametrize("value", ["x", "-1", ""])
def test_a_count_that_is_no_number_is_none(value: str) -> None:
    """A user may have written it."""
    assert read(metadata={"annotations": {"kubevirt-scheduler/moved-away": value}}).moved_away == 0


def test_an_evacuation_names_the_node_that_the_vm_leaves() -> None:
    """By KubeVirt's own annotation."""
    assert read(metadata={"annotations": {"kubevirt.io/evacuationMigration": "n1"}}).evacuates == "n1"


def test_a_migration_that_is_being_deleted_is_seen_as_such() -> None:
    """KubeVirt's finalizer keeps it until the end."""
    assert read(metadata={"deletionTimestamp": AT}).deleted


@pytest.mark.parametrize(
    ("items", "limits"),
    [
        pytest.param([], KubeVirtLimits(version=None), id="no KubeVirt"),
        pytest.param([{}], KubeVirtLimits(version=None), id="not deployed yet"),
        pytest.param(
            [{"status": {"observedKubeVirtVersion": "v1.8.2-rc.1"}}], KubeVirtLimits(version=(1, 8)), id="defaults"
        ),
        pytest.param([{"status": {"observedKubeVirtVersion": "devel"}}], KubeVirtLimits(version=None), id="no version"),
        pytest.param(
            [
                {
                    "spec": {
                        "configuration": {
                            "migrations": {"parallelMigrationsPerCluster": 20, "parallelOutboundMigrationsPerNode": 4}
                        }
                    },
                    "status": {"observedKubeVirtVersion": "1.5.0"},
                }
            ],
            KubeVirtLimits(version=(1, 5), parallel_per_cluster=20, parallel_outbound_per_node=4),
            id="configured",
        ),
        pytest.param(
            [{"spec": {"configuration": {"migrations": {"parallelMigrationsPerCluster": None}}}}],
            KubeVirtLimits(version=None),
            id="null",
        ),
    ],
)
def test_kubevirts_limits_are_those_of_its_configuration(items: list[Any], limits: KubeVirtLimits) -> None:
    """What is not configured is KubeVirt's default. A version that can't be read is unknown."""
    assert kubevirt_limits({"items": items}) == limits
