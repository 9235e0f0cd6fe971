"""candidates of VMs that are stopped, over a bundle and beside explain. tests/golden shows what it prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support.drivers.serving import write_cluster
from support.drivers.status_runs import Object, Ran
from support.fakes.static_api import StaticApi
from support.scenarios.stopped_vms import STOPPED, items, objects

Run = Callable[..., Ran]
VMS: Final = "/apis/kubevirt.io/v1/virtualmachines"


@pytest.fixture
def stored() -> list[Object]:
    """The VMs behind the API server."""
    return objects()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The VMs in a file."""
    return write_cluster(tmp_path / "cluster.json", objects())


def test_candidates_decides_as_explain_does(run: Run, file: Path) -> None:
    """For each VM, by the name that `-o name` prints; `explain` reads the VirtualMachine of a VM that is stopped."""
    names = run("candidates", "-n", "vms", "-f", str(file), "-o", "name").out.split()
    assert names == [
        *(f"virtualmachine.kubevirt.io/{name}" for name in STOPPED),
        "virtualmachineinstance.kubevirt.io/web",
    ]
    words = ("-n", "vms", "--manifests", str(file), "-o", "json")
    told = run("explain", *names[:-1], "--opt-in-all", "required", *words).report
    explained = {each["object"]["name"]: (each["decision"], each["reason"]) for each in told["items"]}
    found = items(run("candidates", *names, *words))
    decided = {name: (item["nextStart"]["decision"], item["nextStart"]["reason"]) for name, item in found.items()}
    assert {**decided, "out": ("unchanged", "OptedOut")} == {**explained, "web": decided["web"]}


def test_a_live_cluster_and_its_bundle_say_the_same(run: Run, api: StaticApi, file: Path, tmp_path: Path) -> None:
    """As the files from which both are made."""
    kubeconfig, bundle = ["--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))], tmp_path / "bundle.json"
    assert run("bundle", "-o", str(bundle), *kubeconfig).code == 0
    live = run("candidates", "-A", *kubeconfig)
    assert [line.split()[1] for line in live.out.splitlines()[1:]] == [*STOPPED, "web"]
    assert run("candidates", "-A", "-f", str(bundle)) == live == run("candidates", "-A", "-f", str(file))


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
