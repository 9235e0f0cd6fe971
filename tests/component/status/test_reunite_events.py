"""What `reunite` last said of a VM stands beside the VM's state, in every form of output."""

from __future__ import annotations

from typing import Any

import pytest
from support.drivers.status_runs import Status, put, sentences
from support.fakes.static_api import StaticApi

EVENTS = "/api/v1/namespaces/vms/events"
LAST = "Cooldown: the VM came home at 03:00"


def event(message: str, at: str, *, vm: str = "web", reason: str = "ReuniteWaiting", kind: str = "") -> dict[str, Any]:
    """An Event of a VirtualMachineInstance."""
    about = {"kind": kind or "VirtualMachineInstance", "namespace": "vms", "name": vm}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{vm}.{at}", "namespace": "vms"},
        "involvedObject": about,
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


@pytest.fixture(autouse=True)
def _events(api: StaticApi) -> None:
    """Two Events of `reunite` on `web`, and Events that say nothing of it."""
    put(
        api,
        event("TooSoon: the VM is apart since 01:00", "2026-01-02T05:00:00Z"),
        event(LAST, "2026-01-02T06:00:00Z"),
        event("it runs", "2026-01-02T07:00:00Z", reason="Started"),
        event("BackOff", "2026-01-02T08:00:00Z", kind="Pod"),
        event("Migrating: now", "2026-01-02T07:00:00Z", vm="db"),
    )


def test_the_last_one_is_shown_for_a_vm_that_is_apart(status: Status) -> None:
    """In JSON as a field, in the table after the reason, in the plan as a comment; not for a VM that is together."""
    rows = {item["name"]: item["reunite"] for item in status("-o json").report["items"]}
    assert rows == {"cold": "", "db": "", "mail": "", "new": "", "web": LAST}
    (line,) = (line for line in status().out.splitlines() if line.startswith("web "))
    assert line.endswith(f"status --plan web -n vms --kubeconfig {status.kubeconfig}; reunite: {LAST}")
    assert f"reunite: {LAST}" in sentences(status("--plan web"), "web")


def test_without_the_right_to_read_events_nothing_is_shown(status: Status, api: StaticApi) -> None:
    """And nothing else changes."""
    before = status("-o json web")
    api.refuse(EVENTS, 403)
    found = status("-o json web")
    assert found.report["items"][0] == {**before.report["items"][0], "reunite": ""}
    assert (found.code, found.report["problems"]) == (before.code, [])
