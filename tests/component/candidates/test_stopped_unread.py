"""candidates where it is not known which VMs are stopped, or what one of them is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.serving import write_cluster
from support.drivers.status_runs import Object, Ran, instance
from support.fakes.static_api import StaticApi
from support.scenarios.stopped_vms import items, machine, objects

from webhook.candidates.settings import CANDIDATES
from webhook.explain.derive.notes import CLUSTER as DERIVED

Run = Callable[..., Ran]
VMS: Final = "/apis/kubevirt.io/v1/virtualmachines"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings and the cluster of the user who runs the tests."""
    remove_settings(monkeypatch, CANDIDATES, *CLUSTER)


@pytest.fixture
def stored() -> list[Object]:
    """The VMs behind the API server."""
    return objects()


@pytest.mark.parametrize("names", [(), ("off",), ("broken",)])
def test_a_virtualmachine_that_can_t_be_read_does_not_end_the_report(
    run: Run, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """One sentence names the VM and its field. A report on other VMs is complete without the broken one."""
    broken = machine("broken")
    broken["spec"]["template"]["spec"]["volumes"] = 7
    file = write_cluster(tmp_path / "cluster.json", [*objects(), broken])
    told = run("candidates", *names, "-n", "vms", "-f", str(file))
    said = [line for line in told.err.splitlines() if "broken" in line]
    assert (told.code, len(said)) == ((0, 0) if names == ("off",) else (1, 1))
    assert ("off" in told.out) == (names != ("broken",))
    nobody = "no VM of these names in namespace vms is known to have a disk with a share-manager"
    assert (nobody in told.err) == (names == ("broken",))
    for sentence in said:
        assert sentence.startswith(f"not everything could be read: vms/broken: {file}")
        assert sentence.endswith("VirtualMachine: spec.template.spec.volumes: got a number, expected a list")


@pytest.mark.parametrize(
    ("vmi", "status", "state"),
    [
        (None, {}, "stopped"),
        (None, {"created": True}, "unknown"),
        ({}, {}, "unknown"),
        ({"phase": "Running"}, {"created": True}, "unknown"),
        ({"phase": "Succeeded"}, {"created": True}, "stopped"),
        ({"phase": "Failed"}, {}, "stopped"),
    ],
)
def test_a_vm_with_an_instance_is_not_called_stopped(
    run: Run, tmp_path: Path, vmi: Object | None, status: Object, state: str
) -> None:
    """It starts just now, or the files lack its pod. A finished instance can stay after a VM."""
    made = [{**each, "status": status} if each["metadata"]["name"] == "off" else each for each in objects()]
    made += [] if vmi is None else [{**instance("off"), "status": vmi}]
    file = write_cluster(tmp_path / "cluster.json", made)
    off = items(run("candidates", "-n", "vms", "-f", str(file), "-o", "json"))["off"]
    unknown = ["whether the VM runs is not known: its VirtualMachineInstance exists, and no pod of it was found"]
    assert (off["state"], off["notes"]) == (state, [*(unknown if state == "unknown" else []), DERIVED])
    kind = "virtualmachine" if state == "stopped" else "virtualmachineinstance"
    assert f"{kind}.kubevirt.io/off\n" in run("candidates", "-n", "vms", "-f", str(file), "-o", "name").out


def test_files_without_a_virtualmachine_show_the_vms_that_run(run: Run, tmp_path: Path) -> None:
    """And say so. Nothing is said of VMs in general."""
    vms = [each for each in objects() if each["kind"] != "VirtualMachine"]
    file = str(write_cluster(tmp_path / "cluster.json", vms))
    only = "only VMs that run are shown: no VirtualMachine is described"
    told = run("candidates", "-n", "vms", "-f", file)
    assert (told.code, told.err.splitlines()[1:]) == (0, ["the lines that opt VMs in: --output commands", only])
    told = run("candidates", "off", "-n", "vms", "-f", file)
    assert (told.code, told.err.splitlines()) == (
        2,
        [
            "no running VM of these names in namespace vms has a disk with a share-manager",
            only,
            "off: no running VM of this name has a disk with a share-manager",
        ],
    )


@pytest.mark.parametrize("bundled", [False, True])
def test_who_may_not_list_virtualmachines_sees_the_vms_that_run(
    run: Run, api: StaticApi, tmp_path: Path, *, bundled: bool
) -> None:
    """The sentence of the API server says why the others are missing. The exit code is 1."""
    api.refuse(VMS, 403, "you may not")
    kubeconfig = ["--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))]
    if bundled:
        run("bundle", "-o", str(tmp_path / "cluster.json"), *kubeconfig)
    words = ["-f", str(tmp_path / "cluster.json")] if bundled else kubeconfig
    told = run("candidates", "-A", *words, "-o", "json")
    problem = "VirtualMachine: 403 Forbidden: you may not; so VMs that are stopped are not shown"
    assert (told.code, list(items(told)), told.report["problems"]) == (1, ["web"], [problem])
    assert told.err.endswith(f"not everything could be read: {problem}\n")
    told = run("candidates", "off", "-n", "vms", *words)
    absent = "off: no running VM of this name is known to have a disk with a share-manager"
    assert (told.code, told.err.splitlines()[-1]) == (2, absent)
