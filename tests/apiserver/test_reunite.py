"""reunite on a real API server, with KubeVirt's kinds: one round, a service, dry runs, crashes and doubles."""

from __future__ import annotations

import gc
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.kubevirt_kinds import crd
from support.drivers.environment import remove_settings
from support.drivers.serving import ROOT
from support.drivers.status_runs import instance
from support.objects import builders
from support.scenarios.admitting import until
from support.scenarios.vm_scenes import reasons_of, scenes
from support.waits import MAX_WAIT_SECONDS

from webhook import cli

NAMESPACE: Final = builders.NAMESPACE
KIND: Final = ("kubevirt.io/v1", "VirtualMachineInstanceMigration", NAMESPACE)
KUBEVIRT: Final = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "KubeVirt",
    "metadata": {"name": "kubevirt", "namespace": "default"},
    "spec": {"configuration": {}},
    "status": {"observedKubeVirtVersion": "v1.8.0"},
}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings of the user who runs the tests."""
    remove_settings(monkeypatch)


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ClusterState]:
    """The VMs of `scenes`, of which `moved` is apart, and KubeVirt 1.8."""
    definitions = [
        crd(kind)
        for kind in ("VirtualMachineInstance", "VirtualMachineInstanceMigration", "VirtualMachine", "KubeVirt")
    ]
    control_plane.install(definitions)
    try:
        with ClusterState(control_plane.api) as state:
            state.become(scenes())
            for each in (running("moved"), KUBEVIRT):
                control_plane.api.create(each)
            yield state
    finally:
        for definition in definitions:
            control_plane.api.delete(definition)


@pytest.fixture(autouse=True)
def _no_migrations(control_plane: ControlPlane, cluster: ClusterState) -> Iterator[None]:
    """Each test ends without a migration."""
    assert cluster
    yield
    for each in migrations(control_plane):
        control_plane.api.delete(each)


def running(name: str, **metadata: Any) -> Object:
    """A VirtualMachineInstance that runs and can be migrated."""
    made = instance(name)
    made["metadata"] |= metadata
    made["status"]["phase"] = "Running"
    return made


def migrations(control_plane: ControlPlane) -> list[Object]:
    """All migrations."""
    return control_plane.api.items(*KIND)


@contextmanager
def service(control_plane: ControlPlane, tmp_path: Path, *words: str) -> Iterator[Callable[[], str]]:
    """A `reunite` process as a service, killed at the end. Yields a function that returns its log."""
    kubeconfig = control_plane.kubeconfig(tmp_path / "kubeconfig", control_plane.admin)
    log = tmp_path / f"log-{len(list(tmp_path.iterdir()))}"
    command = [sys.executable, "-m", "webhook", "reunite", "--kubeconfig", str(kubeconfig), *words]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--health-listen", "127.0.0.1:0"], cwd=ROOT, stderr=out)  # noqa: S603 - ours
    try:
        yield log.read_text
    finally:
        process.kill()
        process.wait()


Once = Callable[..., tuple[int, str, str]]


@pytest.fixture
def once(control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Once:
    """Run one round that is only printed."""

    def run(*words: str) -> tuple[int, str, str]:
        kubeconfig = control_plane.kubeconfig(tmp_path / "kubeconfig", control_plane.admin)
        code = cli.main(["reunite", "--once", *words, "--kubeconfig", str(kubeconfig)])
        return code, *capsys.readouterr()

    return run


def test_one_round_is_printed_and_writes_nothing(once: Once, control_plane: ControlPlane) -> None:
    """The VM that is apart, where it would go, and no migration."""
    code, out, err = once()
    assert (code, err) == (0, "")
    assert out.splitlines()[1].split() == [
        *(NAMESPACE, "moved", "migrate"),
        *("moved-reunite-1:", "from", "node", "node-b", "to", "node", "node-a"),
    ]
    assert migrations(control_plane) == []
    gc.collect()  # pytest fails a test that leaves a connection open


def test_a_plan_of_status_says_the_same(
    once: Once, control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same target; and, if another pod does not want the VM on its node, the same reason."""

    def planned() -> tuple[list[Object], str]:
        kubeconfig = control_plane.kubeconfig(tmp_path / "plan", control_plane.admin)
        cli.main(["status", "moved", "-n", NAMESPACE, "--plan", "--kubeconfig", str(kubeconfig)])
        out = capsys.readouterr().out
        return [each for each in yaml.safe_load_all(out) if each], out

    (migration,), _ = planned()
    assert migration["spec"] == {"vmiName": "moved", "addedNodeSelector": {"kubernetes.io/hostname": "host-node-a"}}
    assert "moved-reunite-1: from node node-b to node node-a" in re.sub(" +", " ", once()[1])
    control_plane.api.create(unfriendly("node-a"))
    try:
        why = "a pod in the same kubernetes.io/hostname as node node-a has a required anti-affinity that excludes this"
        offered, out = planned()
        assert (offered, f"no live migration: {why}" in out) == ([], True)
        assert f"NotPlaceable: {why}" in re.sub(" +", " ", once()[1])
    finally:
        control_plane.api.delete(unfriendly("node-a"))


def unfriendly(node: str) -> Object:
    """A pod of another application on a node, with an anti-affinity to every virt-launcher pod."""
    rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"kubevirt.io": "virt-launcher"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "unfriendly", "namespace": NAMESPACE},
        "spec": {
            "nodeName": node,
            "affinity": {"podAntiAffinity": required},
            "containers": [{"name": "app", "image": "example.invalid/app"}],
            "terminationGracePeriodSeconds": 0,
        },
    }


def test_the_first_rule_that_says_no_is_printed(once: Once) -> None:
    """Here a VM without the annotation, where the default is off."""
    assert "NotAsked: the VM's annotation kubevirt-scheduler/reunite is not set" in once("--default", "off")[1]


def test_a_vm_that_is_apart_is_migrated_once(control_plane: ControlPlane, tmp_path: Path) -> None:
    """To the node of its share-manager, with the label and the short time-out. A later process creates no second."""
    with service(control_plane, tmp_path, "--dry-run", "off"):
        until(lambda: migrations(control_plane), "the migration")
        until(lambda: "ReuniteStarted" in reasons_of(control_plane.api, "moved"), "the Event")
    with service(control_plane, tmp_path, "--dry-run", "off") as log:
        until(lambda: "Migrating: a migration of the VM runs now" in log(), "the rule")
        until(lambda: "ReuniteWaiting" in reasons_of(control_plane.api, "moved"), "the Event")
    (created,) = migrations(control_plane)
    assert created["metadata"]["name"] == "moved-reunite-1"
    assert created["metadata"]["labels"] == {"kubevirt-scheduler/reunite": "true"}
    assert created["metadata"]["annotations"] == {
        "kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "60",
        "kubevirt-scheduler/moved-away": "0",
    }
    assert created["spec"] == {"vmiName": "moved", "addedNodeSelector": {"kubernetes.io/hostname": "host-node-a"}}


def test_two_processes_create_one_migration(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The name is the same, so that the API server takes one of them."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with (
        service(control_plane, first, "--dry-run", "off") as one,
        service(control_plane, second, "--dry-run", "off") as other,
    ):
        until(lambda: all(_has_acted(log()) for log in (one, other)), "both")
    assert len(migrations(control_plane)) == 1


def _has_acted(log: str) -> bool:
    return any(words in log for words in ("migration created", "already exists", "Migrating: "))


def test_a_dry_run_says_what_it_would_do(
    control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the default. It creates no migration, and log, Event and `status` say what it would do."""
    would = "create migration moved-reunite-1: from node node-b to node node-a, that of its share-manager"
    with service(control_plane, tmp_path) as log:
        until(lambda: would in log(), "the line")
        until(lambda: "ReuniteDryRun" in reasons_of(control_plane.api, "moved"), "the Event")
    assert migrations(control_plane) == []
    cli.main(["status", "moved", "-n", NAMESPACE, "-o", "json", "--kubeconfig", str(tmp_path / "kubeconfig")])
    (row,) = json.loads(capsys.readouterr().out)["items"]
    assert row["reunite"] == f"would {would}; --dry-run=on, so nothing is done"


def test_sigterm_ends_it(control_plane: ControlPlane, tmp_path: Path) -> None:
    """With exit code 0, and a last line."""
    kubeconfig = control_plane.kubeconfig(tmp_path / "kubeconfig", control_plane.admin)
    command = [sys.executable, "-m", "webhook", "reunite", "--kubeconfig", str(kubeconfig)]
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--health-listen", "127.0.0.1:0"], cwd=ROOT, stderr=out)  # noqa: S603 - ours
    try:
        until(lambda: '"started"' in log.read_text(), "the start")
        process.send_signal(signal.SIGTERM)
        assert process.wait(MAX_WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
    assert '"stopped"' in log.read_text().splitlines()[-1]
