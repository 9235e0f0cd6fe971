"""What people reported of live migrations, as clusters in tests/reports: `reunite` gives the right answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.drivers.status_runs import Ran

REPORTS: Final = Path(__file__).parents[1] / "reports"
Run = Callable[..., Ran]
_LIST: Final = ("-o", "yaml", "--now")


@pytest.fixture
def reunite(run: Run) -> Callable[..., Ran]:
    """Run `reunite` on the cluster of a report."""
    return lambda report, *words: run("reunite", *words, "--manifests", str(REPORTS / f"{report}.yaml"))


def lines(told: Ran) -> dict[str, tuple[str, str]]:
    """What is done with each VM, and why."""
    rows = (line.split(maxsplit=3) for line in told.out.splitlines()[1:])
    return {vm: (action, why) for _, vm, action, why in rows}


def test_kubevirt_1_5_has_no_field_for_the_target(reunite: Callable[..., Ran]) -> None:
    """harvester/harvester#8703, kubevirt/kubevirt#12725: the API server drops the field."""
    report = "kubevirt-1-5-added-node-selector"
    assert lines(reunite(report))["old"] == (
        "none",
        "KubeVirtTooOld: KubeVirt v1.5.2 has no addedNodeSelector: expected 1.6.0",
    )
    assert "kind: VirtualMachineInstanceMigration" not in reunite(report, *_LIST).out


def test_a_node_without_the_cpu_of_the_source_takes_no_target(reunite: Callable[..., Ran]) -> None:
    """kubevirt/kubevirt#7672, #5623, #17812: six VMs with host-model, whose home is an older node."""
    for words in ((), _LIST):
        out = reunite("host-model-mixed-cpus", *words).out
        assert out.count("NotPlaceable: node old-1 does not have the label cpu-model-migration.node.kubevirt.io/") == 6
        assert out.count("its next start can bring it there: virtctl restart hm") == 6
        assert "kind: VirtualMachineInstanceMigration" not in out


def test_a_mark_that_is_left_holds_up_no_other_vm(reunite: Callable[..., Ran]) -> None:
    """kubevirt/kubevirt#9585, #5177, harvester/harvester#10698: VM `mark` has evacuationNodeName for days."""
    told = lines(reunite("evacuation-mark-left", "--at-once", "3"))
    assert {vm: action for vm, (action, _) in told.items()} == dict.fromkeys(("mk1", "mk2", "mk3"), "migrate")
    listed = [each for each in yaml.safe_load_all(reunite("evacuation-mark-left", *_LIST).out) if each]
    assert [each["metadata"]["generateName"] for each in listed] == ["mk1-together-", "mk2-together-", "mk3-together-"]
    assert {each["metadata"]["annotations"]["kubevirt-scheduler/from-list"] for each in listed} == {"true"}


def test_a_pod_that_never_mounted_its_volume_is_not_moved(reunite: Callable[..., Ran]) -> None:
    """longhorn/longhorn#7301, #6429, #3994: the VM is not apart. `status` says what it is."""
    assert reunite("bound-but-never-mounted").out.startswith("nothing to do: none of 1 VMs is apart (1 ")


def test_a_list_sends_no_vm_where_longhorn_misses_the_nfs_client(reunite: Callable[..., Ran]) -> None:
    """longhorn/longhorn#2058, #1799, #3229."""
    told = reunite("no-mount-nfs-on-home", *_LIST).out
    assert "prod/nq: NotPlaceable: node node-b lacks an NFS client" in told
    assert "kind: VirtualMachineInstanceMigration" not in told


def test_what_a_failed_migration_left_is_no_migration_that_runs(reunite: Callable[..., Ran]) -> None:
    """openshift/console#4460, kubevirt/kubevirt#5373: KubeVirt may refuse another one as long as that pod is there."""
    assert lines(reunite("failed-target-lingers"))["web"] == (
        "none",
        "NotMovable: another pod of it is on a node: that of a migration, or what is left of one",
    )


def test_a_share_that_others_use_moves_no_vm(reunite: Callable[..., Ran]) -> None:
    """Neither does a volume of three namespaces."""
    assert reunite("claim-shared-with-pods").out == "nothing to do: none of 1 VMs is apart (1 together)\n"
    assert "kind: VirtualMachineInstanceMigration" not in reunite("volume-in-three-namespaces", *_LIST).out
