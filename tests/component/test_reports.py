"""What people reported in public, as clusters in tests/reports: the commands give the right answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.status_runs import Ran
from support.scenarios.stopped_vms import items

REPORTS: Final = Path(__file__).parents[1] / "reports"
Run = Callable[..., Ran]


@pytest.fixture
def ask(run: Run) -> Callable[..., Ran]:
    """Run a command on the cluster of a report."""
    return lambda report, *words: run(*words, "--manifests", str(REPORTS / f"{report}.yaml"))


def test_a_volume_of_three_namespaces_is_no_vm_s_own_disk(ask: Callable[..., Ran]) -> None:
    """Each of the three VMs was required on the node of the volume that all of them have."""
    found = items(ask("volume-in-three-namespaces", "candidates", "-A", "-o", "json"))
    starts = {name: item["nextStart"] for name, item in found.items()}
    assert sorted(starts) == ["team-a-vm", "team-b-vm", "team-c-vm"]
    assert {(each["decision"], each["reason"]) for each in starts.values()} == {("preferred", "SharedClaim")}
    told = ask("volume-in-three-namespaces", "explain", "vm/team-a-vm", "-n", "team-a", "-o", "json").report
    assert (told["decision"], told["reason"]) == ("preferred", "SharedClaim")
    assert "its volume is also used by PersistentVolume shared-data-team-b and others" in told["sentence"]


def test_a_share_that_a_deployment_uses_keeps_no_vm_apart(ask: Callable[..., Ran]) -> None:
    """The root disk is at home. No restart and no migration brings the VM to the share."""
    (row,) = ask("claim-shared-with-pods", "status", "-A", "-o", "json").report["items"]
    assert (row["state"], row["node"]) == ("together", "node-a")
    shares = {volume["claim"]: volume for volume in row["volumes"]}
    assert (shares["media"]["node"], shares["media"]["together"]) == ("node-c", None)
    assert "its volume is also used by pod media-6f-0 and others" in shares["media"]["because"]
    told = ask("claim-shared-with-pods", "explain", "vm/nas", "-n", "home", "-o", "json").report
    assert (told["decision"], told["required"]) == ("required", ["node-a"])


def test_the_target_of_a_failed_migration_is_not_where_the_vm_is(ask: Callable[..., Ran]) -> None:
    """It stays Running on the node of the share-manager. A new share-manager follows the VM."""
    (row,) = ask("failed-target-lingers", "status", "-A", "-o", "json").report["items"]
    assert (row["state"], row["node"], row["pod"]) == ("apart", "node-b", "virt-launcher-web-abcde")
    pod = ("pod/share-manager-pvc-w1", "-n", "longhorn-system")
    consumers = ask("failed-target-lingers", "explain", *pod, "-o", "json").report["volume"]["consumers"]
    assert [(each["reason"], each["node"]) for each in consumers] == [("ConsumerOnNode", "node-b")]


def test_no_vm_is_placed_or_moved_where_longhorn_misses_the_nfs_client(ask: Callable[..., Ran]) -> None:
    """longhorn/longhorn#2058, #1799, #3229: the share-manager runs on node-b, which has no package nfs-common.

    Kubelet can mount nothing there, no start fails, and nothing tries again.
    """
    report = "no-mount-nfs-on-home"
    explained = ask(report, "explain", "vm/np", "-n", "prod", "-o", "json").report
    assert (explained["decision"], explained["reason"]) == ("unchanged", "NfsClientMissing")
    assert {node["name"]: node["reason"] for node in explained["nodes"]}["node-b"] == "NfsClientMissing"
    candidates = ask(report, "candidates", "-A", "-o", "json").report["items"]
    assert {each["nextStart"]["decision"] for each in candidates} == {"unchanged"}
    (vm,) = ask(report, "status", "-A", "-o", "json").report["items"]
    assert vm["state"] == "apart"
    _, vm_line = ask(report, "reunite").out.splitlines()
    assert vm_line.split()[:4] == ["prod", "nq", "none", "NotPlaceable:"]
    assert "node node-b lacks an NFS client" in vm_line
