"""What is kept of a VirtualMachineInstance."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from webhook.reunite import vmis
from webhook.reunite.vmis import VMIRecord


def record(status: dict[str, Any] | None, annotations: dict[str, str] | None = None) -> VMIRecord:
    """The record of a VMI with this status."""
    metadata = {"name": "db", "namespace": "vms", "uid": "u1", "creationTimestamp": "2026-01-02T03:04:05Z"}
    wire = {"metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}
    if status is not None:
        wire["status"] = status
    return vmis.transform(msgspec.convert(wire, vmis.WireVMI))


def condition(status: str, **parts: str) -> dict[str, Any]:
    """A status with the condition LiveMigratable."""
    return {"conditions": [{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": status, **parts}]}


def test_a_vmi_that_runs() -> None:
    """With everything that is read of one."""
    found = record(
        {"phase": "Running", "nodeName": "node-a", "evacuationNodeName": "node-b", **condition("True")},
        {"kubevirt-scheduler/reunite": "false", "other": "1"},
    )
    assert found == VMIRecord(
        (),
        (),
        "u1",
        None,
        node="node-a",
        started="2026-01-02T03:04:05Z",
        phase="Running",
        reunite="false",
        unmigratable="",
        evacuates="node-b",
    )


@pytest.mark.parametrize(
    ("status", "unmigratable"),
    [
        pytest.param(None, "", id="no status"),
        pytest.param({"phase": "Running"}, "", id="no conditions"),
        pytest.param(condition("True"), "", id="migratable"),
        pytest.param(
            condition("False", reason="HostDevice", message="a GPU"), "HostDevice: a GPU", id="with KubeVirt's reason"
        ),
        pytest.param(condition("Unknown", reason="R", message="M"), "", id="unknown"),
    ],
)
def test_a_vm_is_migratable_unless_kubevirt_says_that_it_is_not(
    status: dict[str, Any] | None, unmigratable: str
) -> None:
    """KubeVirt's admission refuses a migration in this case only, and names the condition's message."""
    assert record(status).unmigratable == unmigratable


@pytest.mark.parametrize(
    ("asked", "now", "memory_bytes"),
    [
        pytest.param({"guest": "2Gi"}, {"guestCurrent": "3Gi"}, 3 << 30, id="more was plugged in"),
        pytest.param({"guest": "2Gi"}, None, 2 << 30, id="a KubeVirt without status.memory"),
        pytest.param({"guest": 1024}, {}, 1024, id="a number"),
        pytest.param({"hugepages": {"pageSize": "2Mi"}}, None, 0, id="none that is named"),
        pytest.param({"guest": "much"}, None, 0, id="no quantity"),
        pytest.param(None, None, 0, id="nothing"),
    ],
)
def test_the_memory_is_that_of_the_guest(asked: Any, now: Any, memory_bytes: int) -> None:
    """0 if the VMI does not say it."""
    wire = {"metadata": {}, "spec": {"domain": {"memory": asked}}, "status": {"memory": now}}
    assert vmis.transform(msgspec.convert(wire, vmis.WireVMI)).memory_bytes == memory_bytes
