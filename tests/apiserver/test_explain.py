"""explain on a real API server: as whom one asks, what RBAC leaves of it, and a pod that the webhook has placed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trustme
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane, User
from support.control_plane.installed import NAME, Installed
from support.control_plane.kubevirt_kinds import crd
from support.drivers.explaining import a_vm
from support.drivers.explaining_plane import NAMESPACE, RBAC, Run, runner, service_account
from support.drivers.serving import cluster as example
from support.objects import builders
from support.scenarios.admitting import until_watched

from webhook import cli

VIEWER: Final = {  # of VMs and claims, and of nothing that is not in a namespace
    "apiVersion": RBAC,
    "kind": "ClusterRole",
    "metadata": {"name": "explain-viewer"},
    "rules": [
        {"apiGroups": ["kubevirt.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods", "persistentvolumeclaims"], "verbs": ["get", "list"]},
    ],
}


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The example cluster, on the control plane."""
    with ClusterState(control_plane.api) as state:
        state.become(example())
        yield control_plane


@pytest.fixture(scope="module")
def with_vm(plane: ControlPlane) -> Iterator[ControlPlane]:
    """KubeVirt's kinds, and the VM `db`, which does not run."""
    definitions = [crd("VirtualMachine"), crd("VirtualMachineInstance")]
    plane.install(definitions)
    vm = a_vm("disk")
    plane.api.create({**vm, "metadata": {"name": "db", "namespace": NAMESPACE}})
    yield plane
    for definition in definitions:
        plane.api.delete(definition)
    plane.install_kubevirt()


def origin(url: str) -> str:
    """How explain calls the cluster of a control plane's kubeconfig."""
    return f"context tests, {url}"


@pytest.fixture
def explain(plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs explain against it."""
    return runner(plane, tmp_path, capsys)


@pytest.fixture(scope="module")
def nobody(plane: ControlPlane) -> User:
    """A service account that was given nothing."""
    return service_account(plane, "explain-nobody")


@pytest.fixture(scope="module")
def viewer(plane: ControlPlane) -> Iterator[User]:
    """A service account that sees VMs, claims and pods in one namespace."""
    user = service_account(plane, "explain-viewer")
    binding = {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": "explain-viewer", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "explain-viewer"},
        "subjects": [{"kind": "ServiceAccount", "name": "explain-viewer", "namespace": NAMESPACE}],
    }
    plane.install([VIEWER, binding])
    yield user
    plane.api.delete(binding)
    plane.api.delete(VIEWER)


@pytest.mark.usefixtures("with_vm")
def test_a_user_without_rights_learns_which_permission_is_missing(explain: Run, nobody: User) -> None:
    """RBAC's own words: who, which verb, which resource, where."""
    code, out, err = explain("vm/db", nobody)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f'User "{nobody.name}" cannot get resource "virtualmachines" in API group "kubevirt.io" in the ' in err


@pytest.mark.usefixtures("with_vm")
def test_a_user_with_some_rights_gets_a_partial_answer(explain: Run, viewer: User) -> None:
    """Without the right to volumes nothing is known of the node; the reason and a note name the missing right."""
    code, out, _ = explain("vm/db", viewer)
    found = json.loads(out)
    start = found["vm"]["nextStart"]
    assert (code, start["nodes"], start["reason"]) == (2, [], "ClaimLookupFailed")
    assert f'User "{viewer.name}" cannot get resource "persistentvolumes"' in start["because"]
    assert any(note.startswith("who else uses the volumes is not known (403 Forbidden: ") for note in found["notes"])


def test_a_wrong_authority(plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` sends nothing to a server whose certificate the kubeconfig's authority has not signed, and names it."""
    kubeconfig = plane.kubeconfig(tmp_path / "kubeconfig", plane.admin)
    content = json.loads(kubeconfig.read_text())
    authority = tmp_path / "ca.crt"
    authority.write_bytes(trustme.CA().cert_pem.bytes())
    content["clusters"][0]["cluster"] = {"server": plane.url, "certificate-authority": str(authority)}
    kubeconfig.write_text(json.dumps(content))
    assert cli.main(["explain", "vm/db", "--kubeconfig", str(kubeconfig)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Error: {origin(plane.url)}: the API server's certificate is not trusted: ")


def test_a_pod_that_the_webhook_has_placed(explain: Run, plane: ControlPlane, installed: Installed) -> None:
    """Placed by the server and bound by the scheduler, it is explained as it was created: the same decision again.

    The webhook's own account gets the same explanation, although it may list pods and not get one.
    """
    installed.enable()
    with installed.serving() as server:
        until_watched(server)
        installed.until_called()
        pod = plane.api.create(builders.virt_launcher_pod(namespace=NAMESPACE, claims=["disk"]))
    installed.disable()
    try:
        bound = plane.api.wait_for(pod, lambda found: bool(found and found["spec"].get("nodeName")), what="bound")
        code, out, err = explain(f"pod/{pod['metadata']['name']}")
        assert explain(f"pod/{pod['metadata']['name']}", plane.service_account(NAME, NAME)) == (code, out, err)
    finally:
        plane.api.delete(pod)
    found = json.loads(out)
    assert (code, err, bound and bound["spec"]["nodeName"]) == (0, "", "node-a")
    decision = pod["metadata"]["annotations"][builders.DECISION]
    assert found["running"] == [
        {"name": pod["metadata"]["name"], "phase": "Pending", "node": "node-a", "decision": decision}
    ]
    assert (found["annotation"], found["affinity"]["before"]) == (decision, None)
    assert found["affinity"]["after"] == bound["spec"]["affinity"]
