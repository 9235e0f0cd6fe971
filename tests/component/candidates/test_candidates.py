"""candidates of VMs that are stopped, over a bundle and beside explain. tests/golden shows what it prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from support.drivers.serving import write_cluster
from support.drivers.status_runs import NODES, Object, Ran
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

from webhook.core.reasons import ANNOTATION_CO_SCHEDULE


def machine(name: str, *claims: str, asks: str | None = None, labels: Object | None = None, **spec: Any) -> Object:
    """A VirtualMachine with disks of these claims; `asks` is the annotation of its template."""
    volumes = [{"name": f"disk-{claim}", "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    meta = {"annotations": {} if asks is None else {ANNOTATION_CO_SCHEDULE: asks}, "labels": labels or {}}
    template = {"metadata": meta, "spec": {"domain": {}, "volumes": volumes}}
    named = {"name": name, "namespace": "vms"}
    spec = {"template": template, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": named, "spec": spec}


def pod(vm: str, claim: str, phase: str) -> Object:
    """A pod of a VM that has not opted in, on node-b."""
    made = running_pod(vm, claim, "node-b")
    made["metadata"]["annotations"].pop(ANNOTATION_CO_SCHEDULE)
    return {**made, "status": {"phase": phase}}


def objects() -> list[Object]:
    """The VM `web` runs. `plain` has no share-manager. All others are stopped."""
    return [
        *map(builders.node, NODES),
        *map(builders.longhorn_node, NODES),
        builders.labeled_namespace("vms", None),
        *(each for vm in ("web", "asks", "two") for each in (*disk(f"{vm}-root"), *served(f"{vm}-root", "node-a"))),
        *(each for vm in COLD for each in (*disk(f"{vm}-cold"), builders.share_manager(f"{vm}-cold", state="stopped"))),
        *disk("own", access_modes=["ReadWriteOnce"]),
        *disk("two-own", access_modes=["ReadWriteOnce"]),
        pod("web", "web-root", "Running"),
        machine("web", "web-root"),
        machine("asks", "asks-root", asks="true"),
        machine("off", "off-cold", labels={"app": "shop"}),
        machine("out", "out-cold", asks="false"),
        machine("over", "over-cold"),
        pod("over", "over-cold", "Succeeded"),
        machine("plain", "own"),
        machine("sized", "sized-cold", instancetype={"name": "u1.medium"}),
        machine("two", "two-cold", "two-own", "two-root"),
    ]


COLD: Final = ("off", "out", "over", "sized", "two")
STOPPED: Final = ["asks", "off", "out", "over", "sized", "two"]


def items(told: Ran) -> dict[str, Any]:
    """VM -> its item of -o json."""
    found = {item["name"]: item for item in told.report["items"]}
    assert len(found) == len(told.report["items"])
    return found


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


def test_candidates_says_what_explain_says(run: Run, file: Path) -> None:
    """For each VM, by the name that `-o name` prints: one function makes both."""
    names = run("candidates", "-n", "vms", "--manifests", str(file), "-o", "name").out.split()
    assert {name.partition("/")[2] for name in names} == {"web", *STOPPED} - {"asks"}
    words = ("-n", "vms", "--manifests", str(file), "-o", "json")
    machines = [name for name in names if name.startswith("virtualmachine.")]
    told = run("explain", *machines, *words).report
    explained = {each["object"]["name"]: each["vm"]["nextStart"] for each in told["items"]}
    for name, each in items(run("candidates", *machines, *words)).items():
        assert each["nextStart"] == explained[name]


def test_a_live_cluster_and_its_bundle_say_the_same(run: Run, api: StaticApi, file: Path, tmp_path: Path) -> None:
    """As the files from which both are made."""
    kubeconfig, bundle = ["--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))], tmp_path / "bundle.json"
    assert run("bundle", "--file", str(bundle), *kubeconfig).code == 0
    live = run("candidates", "-A", *kubeconfig)
    assert sorted(line.split()[1] for line in live.out.splitlines()[1:]) == sorted({*STOPPED, "web"} - {"asks"})
    assert run("candidates", "-A", "--manifests", str(file)) == live
    kept = run("candidates", "-A", "--manifests", str(bundle))
    then, *sentences = kept.err.splitlines()
    assert (kept.code, kept.out, sentences) == (live.code, live.out, live.err.splitlines())
    assert then == f"the cluster as it was at {json.loads(bundle.read_text())['items'][0]['at']}"


@pytest.mark.parametrize("bundled", [False, True])
def test_who_may_not_list_virtualmachines_sees_the_vms_that_run(
    run: Run, api: StaticApi, tmp_path: Path, *, bundled: bool
) -> None:
    """The sentence of the API server says why the others are missing. The exit code is 2."""
    api.refuse(VMS, 403, "you may not")
    kubeconfig = ["--kubeconfig", str(api.kubeconfig(tmp_path / "kubeconfig"))]
    if bundled:
        run("bundle", "--file", str(tmp_path / "cluster.json"), *kubeconfig)
    words = ["--manifests", str(tmp_path / "cluster.json")] if bundled else kubeconfig
    told = run("candidates", "-A", *words, "-o", "json")
    problem = "virtualmachines.kubevirt.io: 403 Forbidden: you may not"
    assert (told.code, list(items(told)), told.report["problems"]) == (2, ["web"], [problem])
    assert told.err.endswith(f"not everything could be read: {problem}\n")
    told = run("candidates", "off", "-n", "vms", *words)
    absent = "off: no running VM of this name in namespace vms is known to have a disk with a share-manager"
    assert (told.code, told.err.splitlines()[-1]) == (2, absent)


@pytest.mark.parametrize(
    ("devices", "others", "needs"),
    [
        pytest.param({}, [], False, id="alone"),
        pytest.param({"filesystems": [{"name": "disk-off-cold", "virtiofs": {}}]}, [], True, id="virtiofs"),
        pytest.param({}, [machine("twin", "off-cold")], True, id="shared"),
    ],
)
def test_a_vm_that_would_do_with_a_block_volume_is_named(
    run: Run, tmp_path: Path, devices: Object, others: list[Object], *, needs: bool
) -> None:
    """longhorn#10498, #11277: users confuse a share-manager with a migratable block volume."""
    stored = objects()
    (vm,) = (each for each in stored if each["kind"] == "VirtualMachine" and each["metadata"]["name"] == "off")
    vm["spec"]["template"]["spec"]["domain"] = {"devices": devices}
    file = write_cluster(tmp_path / "cluster.json", [*stored, *others])
    found = items(run("candidates", "-n", "vms", "--manifests", str(file), "-o", "json"))
    assert found["off"]["needsShareManager"] is needs
