"""bundle on a real API server: status, explain and candidates say of the file what they say of the cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane, User
from support.control_plane.kube_api import Object
from support.control_plane.kubevirt_kinds import crd
from support.drivers.explaining import OPT_IN, volumes
from support.drivers.explaining_plane import RBAC, service_account, viewer_binding
from support.objects import builders
from support.scenarios.cold_start import PASSPHRASE
from support.scenarios.vm_scenes import scenes

from webhook import cli

NAMESPACE: Final = builders.NAMESPACE
DISKS: Final = {"db": "root", "moved": "page", "pinned": "mail", "cold": "cold", "off": "cold"}
STOPPED: Final = "off"
PASSWORD: Final = "only-for-the-guest"  # noqa: S105 - of nothing
SECRETS: Final = (PASSPHRASE, PASSWORD)
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
VIEWER: Final = {
    "apiVersion": RBAC,
    "kind": "ClusterRole",
    "metadata": {"name": "bundle-viewer"},
    "rules": [
        {"apiGroups": [""], "resources": ["pods", "persistentvolumeclaims", "nodes"], "verbs": ["list"]},
        {"apiGroups": ["longhorn.io"], "resources": ["*"], "verbs": ["list"]},
    ],
}
BINDING: Final = viewer_binding("bundle-viewer")
NOT_SHOWN: Final = "so VMs that are stopped are not shown"


def instance_spec(vm: str) -> Object:
    """The spec of a VirtualMachineInstance, with a password for its guest."""
    guest = {"name": "init", "cloudInitNoCloud": {"userData": f"#cloud-config\npassword: {PASSWORD}"}}
    return {"domain": {"memory": {"guest": "2Gi"}}, "volumes": [*volumes(DISKS[vm]), guest]}


def machine(vm: str) -> Object:
    """A VirtualMachine, as somebody applied it with kubectl."""
    template = {"metadata": {"annotations": {OPT_IN: "true"}}, "spec": instance_spec(vm)}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": vm, "namespace": NAMESPACE, "annotations": {LAST_APPLIED: json.dumps(template)}},
        "spec": {"runStrategy": "Always", "template": template},
    }


def instance(vm: str) -> Object:
    """The VirtualMachineInstance of a VM."""
    meta = {"name": vm, "namespace": NAMESPACE, "annotations": {OPT_IN: "true"}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": meta,
        "spec": instance_spec(vm),
    }


def running(uids: dict[str, str]) -> list[Object]:
    """The scenes. Each pod has the uid of its VM, and each share-manager's pod has the passphrase of its volume."""
    made = scenes()
    for each in made:
        vm = each["metadata"]["name"].removeprefix("virt-launcher-").rpartition("-")[0]
        if each["kind"] == "Pod" and vm in uids:
            each["metadata"]["labels"]["kubevirt.io/created-by"] = uids[vm]
        elif each["kind"] == "Pod":
            each["spec"]["containers"][0]["env"] = [{"name": "CRYPTOKEYVALUE", "value": PASSPHRASE}]
            each["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(each)}
    return made


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Four VMs with their VirtualMachines and VirtualMachineInstances, and one that is stopped."""
    definitions = [crd("VirtualMachine"), crd("VirtualMachineInstance")]
    with ClusterState(control_plane.api) as state:
        state.become([])
        state.namespace(NAMESPACE)
        control_plane.install(definitions)
        for vm in DISKS:
            control_plane.api.create(machine(vm))
        uids = {vm: control_plane.api.create(instance(vm))["metadata"]["uid"] for vm in DISKS if vm != STOPPED}
        state.become(running(uids))
        yield control_plane
    for definition in definitions:
        control_plane.api.delete(definition)
    control_plane.install_kubevirt()


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command: on the live cluster as `user`, or on the file that `made_of` names."""

    def run(words: str, *, user: User | None = None, made_of: Path | None = None) -> tuple[int, str, str]:
        live = ("--kubeconfig", str(plane.kubeconfig(tmp_path / "kubeconfig", user or plane.admin)))
        where = ("--manifests", str(made_of)) if made_of else live
        code = cli.main([*words.split(), *where])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def bundle(run: Run, tmp_path: Path) -> Path:
    """A bundle by the admin."""
    code, _, errors = run(f"bundle --file {tmp_path}/cluster.json")
    assert code == 0, errors
    return tmp_path / "cluster.json"


def without_origin(found: tuple[int, str, str]) -> tuple[int, Any]:
    """The exit code and the JSON, without what names the cluster and the time. A command names the cluster, too."""
    told = re.sub(r" --(kubeconfig|manifests) [^\s\"]+", "", found[1])
    return found[0], json.loads(told) | {"cluster": "", "at": ""}


ASKED: Final = (
    f"status -n {NAMESPACE} -o json",
    "status -A -o json",
    f"status db moved -n {NAMESPACE} -o json",
    "candidates -A -o json",
    *(f"explain vm/{vm} -n {NAMESPACE} -o json" for vm in DISKS),
    f"explain vmi/db -n {NAMESPACE} -o json",
    f"explain pod/virt-launcher-db-aaaaa -n {NAMESPACE} -o json",
    f"explain pod/virt-launcher-pinned-aaaaa -n {NAMESPACE} -o json",
    "explain pod/share-manager-root -n longhorn-system -o json",
)


@pytest.mark.parametrize("words", ASKED)
def test_a_bundle_says_what_the_cluster_says(words: str, run: Run, bundle: Path) -> None:
    """Each row, each decision with its evidence, each hint, and the exit code."""
    assert without_origin(run(words, made_of=bundle)) == without_origin(run(words))


def test_nothing_secret_is_in_a_bundle(run: Run, plane: ControlPlane, tmp_path: Path) -> None:
    """The passphrase of a volume, and what a VM's user wrote for the guest, are in the cluster and not in the file."""
    for kind in (("v1", "Pod", "longhorn-system"), ("kubevirt.io/v1", "VirtualMachine", NAMESPACE)):
        assert any(secret in json.dumps(plane.api.items(*kind)) for secret in SECRETS)
    code, out, errors = run("bundle --file -")
    assert code == 0
    assert [secret for secret in (*SECRETS, LAST_APPLIED, "cloudInit", '"env"') if secret in out] == []
    assert errors.startswith("standard output: written from context tests, ")
    assert "left out: Secrets, data of ConfigMaps, environment" in errors
    assert list(tmp_path.glob("*.json")) == []


def test_what_could_not_be_read_is_unknown_and_never_absent(run: Run, plane: ControlPlane, tmp_path: Path) -> None:
    """The sentence of the API server is in the file, and status and explain say of the file what they say live."""
    user = service_account(plane, "bundle-viewer")
    plane.install([VIEWER, BINDING])
    file = tmp_path / "partial.json"
    try:
        code, _, errors = run(f"bundle --file {file}", user=user)
        live = run(f"status -n {NAMESPACE} -o json", user=user)
        candidates = run(f"candidates -n {NAMESPACE} -o json", user=user)
    finally:
        plane.api.delete(BINDING)
        plane.api.delete(VIEWER)
    refused = f'User "{user.name}" cannot list resource "persistentvolumes"'
    assert code == 2
    assert (
        f"not everything could be read: persistentvolumes: 403 Forbidden: persistentvolumes is forbidden: {refused}"
        in (errors)
    )
    found = run(f"status -n {NAMESPACE} -o json", made_of=file)
    states = {item["name"]: item["state"] for item in json.loads(found[1])["items"]}
    assert found[0] == live[0]
    assert states == {item["name"]: item["state"] for item in json.loads(live[1])["items"]}
    assert states["db"] == "unknown"
    assert refused in found[2]
    assert (candidates[0], json.loads(candidates[1])["items"]) == (2, [])
    assert (
        f'cannot list resource "virtualmachines" in API group "kubevirt.io" at the cluster scope; {NOT_SHOWN}'
        in (candidates[2])
    )
    code, out, errors = run(f"explain vm/db -n {NAMESPACE}", made_of=file)
    assert (code, out) == (2, "")
    assert f'User "{user.name}" cannot list resource "virtualmachines"' in errors
