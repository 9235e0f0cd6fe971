"""What the commands say of clusters that people reported: tests/reports has their objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from webhook import cli

REPORTS: Final = Path(__file__).parents[1] / "reports"


def said(capsys: pytest.CaptureFixture[str], report: str, *words: str) -> str:
    """What a command prints of the cluster of a report."""
    cli.main([*words, "--manifests", str(REPORTS / report)])
    return capsys.readouterr().out


def said_as_json(capsys: pytest.CaptureFixture[str], report: str, *words: str) -> Any:
    """The same, as JSON."""
    return json.loads(said(capsys, report, *words, "-o", "json"))


def test_no_vm_is_placed_or_moved_where_longhorn_misses_the_nfs_client(capsys: pytest.CaptureFixture[str]) -> None:
    """longhorn/longhorn#2058, #1799, #3229: the share-manager runs on node-b, which has no package nfs-common.

    Kubelet can mount nothing there, no start fails, and nothing tries again.
    """
    report = "no-mount-nfs-on-home"
    explained = said_as_json(capsys, report, "explain", "vm/np", "-n", "prod")
    assert (explained["decision"], explained["reason"]) == ("unchanged", "NfsClientMissing")
    assert {node["name"]: node["reason"] for node in explained["nodes"]}["node-b"] == "NfsClientMissing"
    candidates = said_as_json(capsys, report, "candidates", "-A")["items"]
    assert {each["nextStart"]["decision"] for each in candidates} == {"unchanged"}
    (vm,) = said_as_json(capsys, report, "status", "-A")["items"]
    assert vm["state"] == "apart"
    _, vm_line = said(capsys, report, "reunite").splitlines()
    assert vm_line.split()[:4] == ["prod", "nq", "none", "NotPlaceable:"]
    assert "node node-b lacks an NFS client" in vm_line
