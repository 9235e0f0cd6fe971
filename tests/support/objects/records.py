"""The record of an admission, as one that tests write to the log and count."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from webhook.telemetry.record import AdmissionRecord

RECORD: Final = AdmissionRecord(
    time=datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC),
    level="info",
    message="admission",
    entry="virt-launcher",
    uid="u-1",
    decision="required",
    reason="ShareManagerPod",
    because="claim disk: pod share-manager-pvc-disk is on node node-a",
    duration_us=85,
    namespace="vms",
    vmi="db01",
    nodes=("node-a", "node-b"),
)
"""A VM's pod that is pinned to two nodes."""
