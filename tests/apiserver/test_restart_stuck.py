"""Stuck VMs on a real control plane: each runs soon after its node was lost, and a VM that waits for resources stays.

kube-scheduler stands still between the admission of the pods and what happens to their nodes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Api
from support.control_plane.rendering import SHARED
from support.objects import builders
from support.scenarios.admitting import until
from support.scenarios.stuck_starts import VM, Cluster, cordon, fill, kubevirt_kinds, lose, reunite

LOST: Final = VM("db-lost", "node-a")
CORDONED: Final = VM("db-cordoned", "node-b")
FILLED: Final = VM("db-filled", "node-c")
VMS: Final = (LOST, CORDONED, FILLED)
FREE: Final = "node-d"
RESTARTS: Final = ("--restart-stuck", "on")
WRITES: Final = ("--dry-run", "none", *RESTARTS)


@pytest.fixture(scope="module")
def with_kubevirt(installed: Installed) -> Iterator[Installed]:
    """The webhook's install, with KubeVirt's kinds, and with the rights of the two components."""
    parts = ("reunite/rbac.yaml", "restart-stuck/rbac.yaml", "restart-stuck/policy.yaml")
    objects = [each for part in parts for each in yaml.safe_load_all((SHARED / part).read_text(encoding="utf-8"))]
    with kubevirt_kinds(installed.plane):
        installed.plane.install(objects)
        yield installed
        for each in objects:
            installed.plane.api.delete(each)


@pytest.fixture
def kubeconfig(with_kubevirt: Installed, tmp_path: Path) -> Path:
    """The API server as the account of `reunite` sees it."""
    plane = with_kubevirt.plane
    return plane.kubeconfig(tmp_path / "kubeconfig", plane.service_account(NAME, f"{NAME}-reunite"))


def disturb(api: Api) -> None:
    """Something happens to the node of each VM."""
    lose(api, LOST.home)
    cordon(api, CORDONED.home)
    fill(api, FILLED.home)


def test_each_stuck_vm_runs_on_another_node(installed: Installed, kubeconfig: Path) -> None:
    """A dry run only says each restart. Then each pod is deleted once, which the VM's Event shows."""
    with Cluster(installed, VMS, [FREE]) as cluster, cluster.started(disturb) as vms:
        until(lambda: said(kubeconfig, *RESTARTS).count(f"Node {FREE} would take the pod") >= len(VMS), "a dry run")
        assert said(kubeconfig, "--dry-run", "server", *RESTARTS).count("would restart the VM: ") == len(VMS)
        assert set(vms.runs.values()) == {1}
        until(lambda: said(kubeconfig, *WRITES) and all(map(vms.node, VMS)), "a node for each VM")
        assert events(cluster.api) == {vm.name for vm in VMS}
        assert {vms.node(vm) for vm in VMS} == {FREE}
        assert set(vms.runs.values()) == {2}


def said(kubeconfig: Path, *flags: str) -> str:
    """What a run prints that has not failed."""
    code, out = reunite(kubeconfig, *flags)
    assert code == 0, out
    return out


def test_a_vm_that_waits_for_resources_everywhere_stays(installed: Installed, kubeconfig: Path) -> None:
    """One other node has enough for one VM: one of two is restarted, and a VM whose user restarts it is not."""
    manual = VM("db-manual", "node-c", run_strategy="Manual")
    vms_here = (LOST, CORDONED, manual)

    def happens(api: Api) -> None:
        for vm in vms_here:
            lose(api, vm.home)
        fill(api, FREE, left=1)

    with Cluster(installed, vms_here, [FREE]) as cluster, cluster.started(happens) as vms:
        until(lambda: "NoOtherNode: " in said(kubeconfig, *RESTARTS), "the rule")
        assert "runStrategy is Manual, so its user restarts it: virtctl" in said(kubeconfig, *RESTARTS)
        until(lambda: said(kubeconfig, *WRITES) and any(map(vms.node, vms_here)), "a node for one VM")
        until(lambda: "NoOtherNode: " in said(kubeconfig, *WRITES), "the rule for the other one")
        assert sorted((vms.runs[vm], vms.node(vm)) for vm in (LOST, CORDONED)) == [(1, None), (2, FREE)]
        assert (vms.runs[manual], vms.node(manual)) == (1, None)
        assert vms.pod(manual) is not None


@pytest.mark.soak
@pytest.mark.soak_only
def test_with_a_run_each_minute_each_vm_runs_within_150_s(installed: Installed, kubeconfig: Path) -> None:
    """With the longest wait of virt-controller before a second start."""
    with Cluster(installed, VMS, [FREE]) as cluster, cluster.started(disturb, wait_seconds=15.0) as vms:
        began = time.monotonic()
        while not all(map(vms.node, VMS)) and time.monotonic() < began + 150.0:
            assert reunite(kubeconfig, *WRITES, stuck_seconds=60.0)[0] == 0
            for _ in range(60):
                time.sleep(1.0)
                if all(map(vms.node, VMS)):
                    break
        seconds = time.monotonic() - began
    print(f"all run after {seconds:.1f} s")  # noqa: T201 - shown by pytest -rP
    assert seconds < 150.0


def events(api: Api) -> set[str]:
    """The VMs with an Event that tells the restart."""
    found = api.items("v1", "Event", builders.NAMESPACE, fieldSelector="reason=ReuniteRestarted")
    return {each["involvedObject"]["name"] for each in found}
