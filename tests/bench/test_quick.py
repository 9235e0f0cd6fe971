"""Each part of the bench runs and prints its table; what it measures is for people, and gates nothing here.

It wants the machine for itself: `make soak` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.nfs.testbed import unfit
from controlplane.build import constant_webhook, programs
from support.control_plane.control_plane import NEWEST

pytestmark = [
    pytest.mark.soak_only,
    pytest.mark.skipif(sys.platform != "linux", reason="CPU affinity and /proc are Linux's"),
]

_PATIENCE_SECONDS = 300  # a hang is a failure; other work of the machine is not


def _quick(part: str) -> str:
    command = [sys.executable, str(Path(__file__).with_name(part)), "--quick"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)  # noqa: S603 - our own program
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_admissions_are_measured() -> None:
    """In its quick mode every figure is there, and is a number."""
    shown = _quick("admissions.py")
    for name in ("server CPU per review, least, us", "latency, p99, us", "resident memory, MiB"):
        assert _figure(shown, name) > 0, shown


def test_caches_are_measured() -> None:
    """A small cluster goes through every measurement, and the figures that do not depend on time are right."""
    shown = _quick("caches.py")
    for name in ("seconds to synced, per 100,000 objects", "resident, MiB"):
        assert _figure(shown, name) > 0, shown
    assert _figure(shown, "calls to the API server in that time") == 0, shown


def test_create_latency_is_measured() -> None:
    """A few pods are created with the webhook, without it and with the one in Go, and no call fails open."""
    programs(NEWEST), constant_webhook()  # or it is skipped, and says what to build
    shown = _quick("create_latency.py")
    for name in ("p50 without a webhook", "p50 with the webhook", "ratio of p50, ours to Go", "CPU of ours for a pod"):
        assert _figure(shown, name) > 0, shown
    assert _figure(shown, "calls that failed open") == 0, shown


def test_cold_starts_are_measured() -> None:
    """A few share-manager pods are created in each way, and the bench prints what kube-scheduler did with them."""
    programs(NEWEST)  # or it is skipped, and says what to build
    shown = _quick("cold_starts.py")
    for name in ("nothing", "the webhook, without its short list", "the webhook"):
        _, pending, cpu_ms = _steered(shown, name)
        assert pending == 0, shown
        assert cpu_ms > 0, shown
    assert _steered(shown, "the webhook")[0] == 100, shown


def _steered(shown: str, name: str) -> tuple[float, float, float]:
    """Percent on target, pods that are Pending, and CPU ms of the row of this name."""
    row = next(line for line in shown.splitlines() if line[:40].rstrip() == name)
    on_target, pending, cpu_ms, *_ = row[40:].split()
    return float(on_target), float(pending), float(cpu_ms)


if os.environ.get("TEST_SIZE") == "whole":  # it needs root and an NFS server, which CI does not install

    def test_what_a_vm_gains_is_measured() -> None:
        """Each request is answered, and one over a relay that adds 500 us takes that much longer."""
        if reason := unfit():
            pytest.skip(reason)
        shown = _quick("gain.py")
        read = {
            row.split("|")[1].strip(): float(row.split("|")[3].split()[0])
            for row in shown.splitlines()
            if "(0 %)" in row
        }
        assert len(read) == 5, shown
        assert read["relay, 500 us added"] > read["relay, 0 us added"] + 450, shown


def _figure(shown: str, name: str) -> float:
    """The figure of the row that begins so."""
    row = next(line for line in shown.splitlines() if line.startswith(name))
    return float(row[66:78])
