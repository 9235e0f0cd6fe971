"""What people reported in public, as clusters in tests/reports: the commands give the right answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.drivers.status_runs import Ran

REPORTS: Final = Path(__file__).parents[1] / "reports"
Run = Callable[..., Ran]


@pytest.fixture
def ask(run: Run) -> Callable[..., Ran]:
    """Run a command on the cluster of a report."""
    return lambda report, *words: run(*words, "--manifests", str(REPORTS / f"{report}.yaml"))


def test_a_volume_of_three_namespaces_is_no_vm_s_own_disk(ask: Callable[..., Ran]) -> None:
    """Each of the three VMs was required on the node of the volume that all of them have."""
    for team in ("team-a", "team-b", "team-c"):
        told = ask("volume-in-three-namespaces", "explain", f"vm/{team}-vm", "-n", team, "-o", "json").report["vm"]
        assert told["nextStart"]["reason"] == "SharedClaim"
    told = ask("volume-in-three-namespaces", "explain", "vm/team-a-vm", "-n", "team-a", "-o", "json").report["vm"]
    shared = [each["because"] for each in told["volumes"] if each["reason"] == "SharedClaim"]
    assert "its volume is also used by PersistentVolume shared-data-team-b and others" in shared[0]


def test_a_share_that_a_deployment_uses_keeps_no_vm_apart(ask: Callable[..., Ran]) -> None:
    """The root disk is at home. No restart and no migration brings the VM to the share."""
    (row,) = ask("claim-shared-with-pods", "status", "-A", "-o", "json").report["items"]
    assert (row["state"], row["node"]) == ("together", "node-a")
    shares = {volume["claim"]: volume for volume in row["volumes"]}
    assert (shares["media"]["node"], shares["media"]["together"]) == ("node-c", None)
    assert "its volume is also used by pod media-6f-0 and others" in shares["media"]["because"]
    told = ask("claim-shared-with-pods", "explain", "vm/nas", "-n", "home", "-o", "json").report
    assert told["vm"]["nextStart"]["nodes"] == ["node-a"]


def test_the_target_of_a_failed_migration_is_not_where_the_vm_is(ask: Callable[..., Ran]) -> None:
    """It stays Running on the node of the share-manager. A new share-manager follows the VM."""
    (row,) = ask("failed-target-lingers", "status", "-A", "-o", "json").report["items"]
    assert (row["state"], row["node"], row["pod"]) == ("apart", "node-b", "virt-launcher-web-abcde")
    pod = ("pod/share-manager-pvc-w1", "-n", "longhorn-system")
    consumers = ask("failed-target-lingers", "explain", *pod, "-o", "json").report["evidence"]
    assert [(each["reason"], each["node"]) for each in consumers] == [("ConsumerOnNode", "node-b")]


def test_no_vm_is_placed_or_moved_where_longhorn_misses_the_nfs_client(ask: Callable[..., Ran]) -> None:
    """longhorn/longhorn#2058, #1799, #3229: the share-manager runs on node-b, which has no package nfs-common.

    Kubelet can mount nothing there, no start fails, and nothing tries again.
    """
    report = "no-mount-nfs-on-home"
    explained = ask(report, "explain", "vm/np", "-n", "prod")
    assert "would gain nothing now: node node-b lacks an NFS client" in explained.out
    start = ask(report, "explain", "vm/np", "-n", "prod", "-o", "json").report["vm"]["nextStart"]
    assert start["reason"] == "NfsClientMissing"
    (vm,) = ask(report, "status", "-A", "-o", "json").report["items"]
    assert vm["state"] == "apart"
    _, vm_line = ask(report, "reunite").out.splitlines()
    assert vm_line.split()[:4] == ["prod", "nq", "none", "NotPlaceable:"]
    assert "node node-b lacks an NFS client" in vm_line


def test_a_pod_that_is_bound_and_never_mounted_does_not_run(ask: Callable[..., Ran]) -> None:
    """longhorn/longhorn#7301, #6429, #3994: kubelet on node-b has mounted nothing for hours.

    The VM has not started. `together` without a word would say that there is nothing to do.
    """
    ran = ask("bound-but-never-mounted", "status", "-A", "-o", "json")
    (row,) = ran.report["items"]
    assert (row["state"], row["since"], row["reason"]) == ("not-running", "2026-11-27T21:00:00Z", "VmNotRunning")
    assert row["because"].endswith("and does not run: ContainerCreating")
    assert "kubectl describe pod virt-launcher-fm-abcde -n prod" in row["remedy"]
    assert "set kubevirt-scheduler/co-schedule to false in the VM's template, and delete the pod" in row["remedy"]
    assert ran.report["summary"]["not-running"] == ran.code == 1


def test_a_status_that_was_not_read_is_named(ask: Callable[..., Ran], tmp_path: Path) -> None:
    """Without the pod's status nobody knows whether it runs: the VM is together, and the exit code is 2."""
    text = (REPORTS / "bound-but-never-mounted.yaml").read_text(encoding="utf-8")
    documents = list(yaml.safe_load_all(text))
    for each in documents:
        if each["metadata"]["name"] == "virt-launcher-fm-abcde":
            del each["status"]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(documents), encoding="utf-8")
    ran = ask(tmp_path / "cluster", "status", "-A", "-o", "json")
    assert ran.report["items"][0]["state"] == "together"
    assert ran.report["problems"] == ["pods: the status of virt-launcher-fm-abcde does not tell whether it runs"]
    assert ran.code == 2
