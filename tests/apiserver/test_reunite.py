"""reunite on a real API server, with KubeVirt's kinds: dry runs, two runs at once, and runs that are killed."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Kubectl
from support.control_plane.kubevirt_kinds import crd
from support.drivers.serving import ROOT
from support.drivers.status_runs import instance
from support.scenarios.reunite_account import KINDS, KUBEVIRT, MIGRATIONS, NAMESPACE, forget
from support.scenarios.vm_scenes import reasons_of, scenes
from support.waits import MAX_WAIT_SECONDS

from webhook import cli


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ClusterState]:
    """The VMs of `scenes`, of which `moved` is apart, and KubeVirt 1.8."""
    definitions = [*map(crd, KINDS)]
    control_plane.install(definitions)
    try:
        with ClusterState(control_plane.api) as state:
            state.become(scenes())
            for each in (running("moved"), KUBEVIRT):
                control_plane.api.apply(each)
            yield state
    finally:
        for definition in definitions:
            control_plane.api.delete(definition)
        control_plane.install_kubevirt()


@pytest.fixture(autouse=True)
def _no_migrations(control_plane: ControlPlane, cluster: ClusterState) -> Iterator[None]:
    """Each test ends without a migration, and without the Event that says that there was one."""
    assert cluster
    yield
    forget(control_plane.api)


def running(name: str, **metadata: Any) -> Object:
    """A VirtualMachineInstance that runs and can be migrated."""
    made = instance(name)
    made["metadata"] |= metadata
    made["status"]["phase"] = "Running"
    return made


def migrations(control_plane: ControlPlane) -> list[Object]:
    """All migrations."""
    return control_plane.api.items(*MIGRATIONS)


Once = Callable[..., tuple[int, str, str]]


@pytest.fixture
def once(control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Once:
    """One run in this process: its exit code and its output, with one space between words."""

    def run(*words: str) -> tuple[int, str, str]:
        kubeconfig = control_plane.kubeconfig(tmp_path / "kubeconfig", control_plane.admin)
        code = cli.main(["reunite", "-A", *words, "--kubeconfig", str(kubeconfig)])
        return code, *(re.sub(" +", " ", text) for text in capsys.readouterr())

    return run


def process(control_plane: ControlPlane, directory: Path) -> subprocess.Popen[bytes]:
    """A run that writes, as a process of its own."""
    kubeconfig = control_plane.kubeconfig(directory / "kubeconfig", control_plane.admin)
    command = [sys.executable, "-m", "webhook", "reunite", "-A", "--kubeconfig", str(kubeconfig), "--dry-run", "none"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - ours


def test_a_dry_run_is_printed_and_writes_nothing(once: Once, control_plane: ControlPlane) -> None:
    """The VM that is apart, where it would go, and no migration. At a terminal it writes no Event either."""
    before = reasons_of(control_plane.api, "moved")
    code, out, err = once("--dry-run", "server")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["NAMESPACE", "VM", "ACTION", "WHY"]
    would = "would create migration moved-reunite-1: from node node-b to node node-a, that of its share-manager"
    assert f"{NAMESPACE} moved migrate {would}" in out
    assert migrations(control_plane) == []
    assert reasons_of(control_plane.api, "moved") == before
    gc.collect()  # pytest fails a test that leaves a connection open


def test_kubectl_takes_a_list(
    once: Once, control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is YAML for `kubectl create`, comments and all."""

    def listed() -> tuple[list[Object], str]:
        kubeconfig = control_plane.kubeconfig(tmp_path / "list", control_plane.admin)
        cli.main(["reunite", "moved", "-n", NAMESPACE, "-o", "yaml", "--now", "--kubeconfig", str(kubeconfig)])
        out = capsys.readouterr().out
        return [each for each in yaml.safe_load_all(out) if each], out

    (migration,), out = listed()
    assert migrations(control_plane) == []
    (tmp_path / "list.yaml").write_text(out)
    Kubectl(control_plane, tmp_path)("create", "-f", tmp_path / "list.yaml")
    (created,) = migrations(control_plane)
    assert created["metadata"]["name"].startswith("moved-together-")
    control_plane.api.delete(created)
    assert migration["spec"] == {"vmiName": "moved", "addedNodeSelector": {"kubernetes.io/hostname": "host-node-a"}}
    assert "labels" not in migration["metadata"]  # it is its user's, and not one of `reunite`
    assert "moved-reunite-1: from node node-b to node node-a" in once()[1]


def test_a_vm_that_is_apart_is_migrated_once(once: Once, control_plane: ControlPlane) -> None:
    """To the node of its share-manager, with the label and the short time-out. A later run creates no second one."""
    code, out, _ = once("--dry-run", "none")
    assert code == 0
    assert "moved migrate migration moved-reunite-1: from node node-b to node node-a" in out
    assert "ReuniteStarted" in reasons_of(control_plane.api, "moved")
    code, out, _ = once("--dry-run", "none")
    assert code == 0
    assert "NotMovable: migration moved-reunite-1 runs" in out
    assert "ReuniteWaiting" in reasons_of(control_plane.api, "moved")
    (created,) = migrations(control_plane)
    assert created["metadata"]["name"] == "moved-reunite-1"
    assert created["metadata"]["labels"] == {"kubevirt-scheduler/reunite": "true"}
    assert created["metadata"]["annotations"] == {"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "60"}
    assert created["spec"] == {"vmiName": "moved", "addedNodeSelector": {"kubernetes.io/hostname": "host-node-a"}}


def test_two_runs_at_once_create_one_migration(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The name is the same, so that the API server takes one of them. The other run says so, and has not failed."""
    directories = [tmp_path / name for name in ("first", "second")]
    for directory in directories:
        directory.mkdir()
    runs = [process(control_plane, directory) for directory in directories]
    said = [each.communicate(timeout=MAX_WAIT_SECONDS)[0].decode() for each in runs]
    assert [each.returncode for each in runs] == [0, 0]
    assert len(migrations(control_plane)) == 1
    words = ("moved-reunite-1: from node", "something else was faster", "NotMovable: ")
    assert all(any(word in re.sub(" +", " ", text) for word in words) for text in said)


@pytest.mark.parametrize("after_seconds", [0.8, 1.6])
def test_a_run_that_is_killed_leaves_nothing_to_repair(
    after_seconds: float, once: Once, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """At any point: the next run does what is left, and there is one migration."""
    killed = process(control_plane, tmp_path)
    try:
        killed.wait(after_seconds)
    except subprocess.TimeoutExpired:
        killed.kill()
    killed.communicate()
    assert once("--dry-run", "none")[0] == 0
    assert [each["metadata"]["name"] for each in migrations(control_plane)] == ["moved-reunite-1"]
