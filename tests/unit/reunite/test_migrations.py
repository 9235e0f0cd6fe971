"""What is kept of a VirtualMachineInstanceMigration."""

from __future__ import annotations

from typing import Any

import msgspec

from webhook.core.reunite.migration import Migration, migration_object
from webhook.reunite import migrations

CREATED, ENDED = "2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z"


def kept(wire: dict[str, Any]) -> Migration:
    """The record of a migration."""
    return migrations.transform(msgspec.convert(wire, migrations.WireMigration))


def stored(**parts: Any) -> dict[str, Any]:
    """A migration as KubeVirt stores one that has just been created by a user."""
    metadata = {"name": "m", "namespace": "vms", "uid": "u", "resourceVersion": "7", "creationTimestamp": CREATED}
    return {
        "metadata": metadata | parts.pop("metadata", {}),
        "spec": {"vmiName": "db"} | parts.pop("spec", {}),
        **parts,
    }


def test_a_migration_that_a_user_has_just_created() -> None:
    """Nothing else is known of it."""
    assert kept(stored()) == Migration(
        namespace="vms", name="m", uid="u", vmi="db", created=CREATED, resource_version="7"
    )
    assert migrations.to_object("vms/m", kept(stored())) == kept(stored())


def test_a_migration_of_ours_that_has_ended() -> None:
    """With its nodes, and the time at which it became final."""
    ours = migration_object("vms", "db", "host-a", name="db-reunite-3", moved_away=1)
    times = [
        {"phase": "Pending", "phaseTransitionTimestamp": CREATED},
        {"phase": "Succeeded", "phaseTransitionTimestamp": ENDED},
    ]
    state = {"sourceNode": "node-b", "targetNode": "node-a"}
    status = {"phase": "Succeeded", "phaseTransitionTimestamps": times, "migrationState": state}
    found = kept(stored(metadata=ours["metadata"], spec=ours["spec"], status=status))
    assert (found.name, found.ours, found.names_target, found.moved_away) == ("db-reunite-3", True, True, 1)
    assert (found.succeeded, found.ended, found.source_node, found.target_node) == (True, ENDED, "node-b", "node-a")


def test_a_drain() -> None:
    """KubeVirt names the node that the VM must leave, and a new one also the priority."""
    annotations = {"kubevirt.io/evacuationMigration": "node-a"}
    found = kept(stored(metadata={"annotations": annotations}, spec={"priority": "system-critical"}))
    assert (found.evacuates, found.is_for_upkeep, found.ours, found.names_target) == ("node-a", True, False, False)
    assert not found.has_no_reason
    old = kept(stored(metadata={"annotations": annotations}))
    assert (old.is_for_upkeep, old.has_no_reason) == (False, True)


def test_an_update() -> None:
    """KubeVirt marks it in every version, also where it sets no priority, and where a change of the VM is the cause."""
    found = kept(stored(metadata={"annotations": {"kubevirt.io/workloadUpdateMigration": ""}}))
    assert (found.updates, found.is_for_upkeep, found.has_no_reason) == (True, True, False)


def test_one_that_is_being_deleted() -> None:
    """It still counts as running until it is final."""
    found = kept(stored(metadata={"deletionTimestamp": ENDED}, status={"phase": "Running"}))
    assert (found.deleted, found.is_final, found.ended) == (True, False, None)
