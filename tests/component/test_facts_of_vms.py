"""Clusters of public reports, reduced: what `explain`, `status` and `candidates` say of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.serving import write_cluster
from support.drivers.status_runs import NODES, Object, Ran
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import disk, running_pod, served

from webhook.core.reasons import ANNOTATION_CO_SCHEDULE

Run = Callable[..., Ran]
TPM: Final = "persistent-state-for-w11-7hq2k"
MISPLACED: Final = (
    'kubevirt-scheduler/co-schedule: "true" is in metadata.annotations, where the webhook does not read it; '
    "expected in spec.template.metadata.annotations: move it there"
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings and the cluster of the user who runs the tests."""
    remove_settings(monkeypatch, *CLUSTER)


def written(directory: Path, *objects: Object, label: str | None = None) -> str:
    """A file with these objects, three nodes and the Namespace `vms` with this label."""
    nodes = [*map(builders.node, NODES), *map(builders.longhorn_node, NODES)]
    return str(write_cluster(directory / "cluster.json", [*nodes, builders.labeled_namespace("vms", label), *objects]))


def vtpm() -> list[Object]:
    """A VM whose root disk is a block device. Only KubeVirt's claim of 10 MiB has a share-manager, on another node.

    Reported as harvester/harvester#6731 and #9181.
    """
    pod = running_pod("w11", "root", "node-a")
    pod["spec"]["volumes"].append(builders.claim_volume("vm-state", TPM))
    root = disk("root", volume_mode="Block")
    return [pod, virtual_machine("w11", ["root"]), virtual_machine_instance("w11", ["root"]), *root, *disk(TPM)]


def test_the_state_of_a_tpm_moves_no_vm(run: Run, tmp_path: Path) -> None:
    """The VM is free, nothing is planned for it, it is not advertised, and its next start requires no node."""
    file = written(tmp_path, *vtpm(), *served(TPM, "node-b"))
    assert run("status", "-A", "-f", file, "-o", "json").states == {"w11": "free"}
    assert run("status", "-A", "--plan", "-f", file).err == "nothing to do: no VM is apart or stuck\n"
    assert run("candidates", "-A", "-f", file) == (0, "", "no VM in any namespace has a disk with a share-manager\n")
    found: Any = run("explain", "vm/w11", "-n", "vms", "--manifests", file, "-o", "json").report
    assert found["decision"] != "required"


def library(vms: list[str]) -> list[Object]:
    """Stopped VMs with a root disk each, and one claim with tools that all of them name.

    Reported as kubevirt/kubevirt#14239.
    """
    made = [virtual_machine(vm, [vm, "tools"]) for vm in vms]
    return [each for vm in vms for each in (*disk(vm), builders.share_manager(vm, state="stopped"))] + made


def test_a_library_does_not_decide_for_all_its_vms(run: Run, tmp_path: Path) -> None:
    """Each VM only prefers the node of the tools. Its root disk would follow it anywhere."""
    vms = ["lab01", "lab02", "lab03"]
    file = written(
        tmp_path, *library(vms), *disk("tools"), *served("tools", "node-b"), running_pod("x", "y"), label="true"
    )
    found = {each["name"]: each for each in run("candidates", "-n", "vms", "-f", file, "-o", "json").report["items"]}
    assert list(found) == vms
    for each in found.values():
        assert (each["nextStart"]["decision"], each["nextStart"]["reason"]) == ("preferred", "SharedClaim")
    explained: Any = run("explain", "vm/lab01", "-n", "vms", "--manifests", file, "-o", "json").report
    assert (explained["decision"], explained["reason"]) == ("preferred", "SharedClaim")


def test_an_annotation_of_the_vm_itself_is_named_with_its_right_place(run: Run, tmp_path: Path) -> None:
    """KubeVirt copies it to no pod (kubevirt/kubevirt#14707); each command says where it belongs."""
    vm, pod = virtual_machine("a", ["root"]), running_pod("a", "root", "node-a")
    vm["metadata"]["annotations"] = {ANNOTATION_CO_SCHEDULE: "true"}
    del pod["metadata"]["annotations"][ANNOTATION_CO_SCHEDULE]
    instance = virtual_machine_instance("a", ["root"])
    file = written(tmp_path, vm, instance, pod, *disk("root"), *served("root", "node-b"))
    assert run("explain", "vm/a", "-n", "vms", "--manifests", file, "-o", "json").report["hints"] == [MISPLACED]
    assert f"vms/a: {MISPLACED}\n" in run("status", "-A", "-f", file).err
    assert MISPLACED not in run("status", "b", "-n", "vms", "-f", file).err
    (item,) = run("candidates", "-A", "-f", file, "-o", "json").report["items"]
    assert item["notes"] == [MISPLACED]
