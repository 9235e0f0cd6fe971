"""status on a real API server: VMs as in production, different users."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane, User
from support.control_plane.kube_api import Object
from support.drivers.explaining_plane import RBAC, service_account
from support.objects import builders
from support.objects.fleets import EARLY, LATER, served
from support.scenarios.vm_scenes import STATES, scenes

from webhook import cli

NAMESPACE: Final = builders.NAMESPACE
NOT_ENOUGH: Final = "Insufficient cpu"
VIEWER: Final = {  # of pods and claims, and of nothing that is not in a namespace
    "apiVersion": RBAC,
    "kind": "Role",
    "metadata": {"name": "status-viewer", "namespace": NAMESPACE},
    "rules": [{"apiGroups": [""], "resources": ["pods", "persistentvolumeclaims"], "verbs": ["list"]}],
}
BINDING: Final = {
    "apiVersion": RBAC,
    "kind": "RoleBinding",
    "metadata": {"name": "status-viewer", "namespace": NAMESPACE},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "status-viewer"},
    "subjects": [{"kind": "ServiceAccount", "name": "status-viewer", "namespace": NAMESPACE}],
}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ClusterState]:
    """The scenes, and what kube-scheduler has made of them."""
    with ClusterState(control_plane.api) as state:
        state.become(scenes())
        waiting = next(each for each in scenes() if each["metadata"]["name"].startswith("virt-launcher-pinned-"))
        control_plane.api.wait_for(waiting, _is_unschedulable, what="unschedulable")
        yield state


def _is_unschedulable(pod: Object | None) -> bool:
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    return any(each.get("reason") == "Unschedulable" for each in conditions)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def status(control_plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run status as `user`, or as the admin."""

    def run(words: str, user: User | None = None) -> tuple[int, str, str]:
        kubeconfig = control_plane.kubeconfig(tmp_path / "kubeconfig", user or control_plane.admin)
        code = cli.main(["status", *words.split(), "--kubeconfig", str(kubeconfig)])
        return code, *capsys.readouterr()

    return run


def items(found: tuple[int, str, str]) -> dict[str, Any]:
    """VM -> row, of -o json."""
    return {item["name"]: item for item in json.loads(found[1])["items"]}


@pytest.mark.usefixtures("cluster")
def test_every_vm_is_as_it_is(status: Run) -> None:
    """Together, apart after a migration, stuck as kube-scheduler says, and free after a cold start."""
    found = status(f"-n {NAMESPACE} -o json")
    assert found[0] == 1
    assert {name: item["state"] for name, item in items(found).items()} == STATES
    db, moved, pinned = (items(found)[name] for name in ("db", "moved", "pinned"))
    assert (db["since"], db["decided"]) == (LATER, "required")
    assert (moved["since"], moved["node"], moved["volumes"][0]["node"]) == (LATER, "node-b", "node-a")
    assert (moved["pod"], moved["migrating"]) == ("virt-launcher-moved-bbbbb", False)
    assert NOT_ENOUGH in pinned["because"]
    assert pinned["since"] > LATER
    assert (
        found[2].splitlines()[0]
        == "4 VMs: 1 stuck, 1 apart, 1 free, 1 together; 33 % together of the 3 that can be compared"
    )


@pytest.mark.usefixtures("cluster")
def test_a_table_has_them_too(status: Run) -> None:
    """Of all namespaces, with the namespace in front."""
    code, out, _ = status("-A")
    rows = [line.split()[:3] for line in out.splitlines()[1:]]
    assert (code, [row for row in rows if row[0] == NAMESPACE]) == (
        1,
        [
            [NAMESPACE, "pinned", "-"],
            [NAMESPACE, "moved", "node-b"],
            [NAMESPACE, "cold", "node-c"],
            [NAMESPACE, "db", "node-a"],
        ],
    )


def test_a_cold_start_is_followed(status: Run, cluster: ClusterState) -> None:
    """The share-manager is made, is scheduled, and the VM is with it."""
    try:
        states = []
        coming = builders.share_manager_pod("cold", phase="Pending")
        made = [builders.share_manager("cold", state="starting", ownerID="node-b"), coming]
        for added in (made, served("cold", "node-c", EARLY)):
            rest = [each for each in scenes() if each["metadata"]["name"] != "cold" or each["kind"] != "ShareManager"]
            cluster.become([*rest, *added])
            states.append(items(status(f"cold -n {NAMESPACE} -o json"))["cold"]["state"])
        assert states == ["pending", "together"]
    finally:
        cluster.become(scenes())


@pytest.mark.usefixtures("cluster")
def test_a_user_with_some_rights_gets_a_partial_answer(status: Run, control_plane: ControlPlane) -> None:
    """Which permissions are missing, in RBAC's words; nothing is together, and nothing is a success."""
    user = service_account(control_plane, "status-viewer")
    control_plane.install([VIEWER, BINDING])
    try:
        found = status(f"-n {NAMESPACE} -o json", user)
        everywhere = status("-A", user)
    finally:
        control_plane.api.delete(BINDING)
        control_plane.api.delete(VIEWER)
    states = {name: item["state"] for name, item in items(found).items()}
    assert states == {"db": "unknown", "moved": "unknown", "pinned": "stuck", "cold": "unknown"}
    assert f'User "{user.name}" cannot list resource "persistentvolumes"' in found[2]
    assert everywhere[:2] == (2, "")
    assert f'User "{user.name}" cannot list resource "pods" in API group "" at the cluster scope' in everywhere[2]
