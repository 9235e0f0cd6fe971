"""explain on a real API server for share-manager pods: by volume, by pod, and what RBAC leaves of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.control_plane import ControlPlane, User
from support.control_plane.installed import Installed
from support.drivers.explaining_plane import (
    NAMESPACE,
    RBAC,
    Run,
    runner,
    service_account,
    viewer_binding,
)
from support.objects import builders
from support.scenarios import cold_start
from support.scenarios.admitting import until_watched
from support.scenarios.cold_start import PASSPHRASE, VOLUME, a_class, a_volume

ASKED: Final = f"volume/{VOLUME}"
LONGHORN: Final = "longhorn-system"
ZONE: Final = {"topology.kubernetes.io/zone": "zone-1"}
VIEWER: Final = {  # of claims, volumes and nodes: what names and places are, and no pod
    "apiVersion": RBAC,
    "kind": "ClusterRole",
    "metadata": {"name": "explain-volume-viewer"},
    "rules": [
        {"apiGroups": ["longhorn.io"], "resources": ["volumes", "nodes", "sharemanagers"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["persistentvolumes", "persistentvolumeclaims"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
    ],
}
BINDING: Final = viewer_binding("explain-volume-viewer")


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """VM `db` runs on node-b, the share-manager of its volume is stopped, and the class asks for zone-1."""
    topology = [{"matchLabelExpressions": [{"key": key, "values": [zone]} for key, zone in ZONE.items()]}]
    storage_class = a_class(provisioner="driver.longhorn.io", allowedTopologies=topology)
    others = [each for each in cold_start.cluster() if each["metadata"]["name"] != "node-b"]
    makers = (builders.longhorn_node, builders.instance_manager_pod)
    here = [builders.node("node-b", labels=ZONE), *(make("node-b") for make in makers)]
    with ClusterState(control_plane.api) as state:
        state.become([*others, *here, a_volume(), storage_class])
        yield control_plane


@pytest.fixture
def explain(plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs explain against it."""
    return runner(plane, tmp_path, capsys)


@pytest.fixture(scope="module")
def viewer(plane: ControlPlane) -> Iterator[User]:
    """A service account that sees volumes, and no pod."""
    user = service_account(plane, "explain-volume-viewer")
    plane.install([VIEWER, BINDING])
    yield user
    plane.api.delete(BINDING)
    plane.api.delete(VIEWER)


def test_a_volume_by_its_name(explain: Run) -> None:
    """Its way to the VM, Longhorn's ticket, and the pod's next start: in the zone of its class, near the VM."""
    code, out, err = explain(ASKED)
    found = json.loads(out)
    assert (code, err, found["running"]) == (0, "", [])
    assert found["preferred"] == [{"node": "node-b", "weight": 100}]
    (claim,) = found["volume"]["claims"]
    assert (claim["claim"], claim["persistentVolume"]) == (f"{NAMESPACE}/disk", VOLUME)
    assert [(vm["vm"], vm["pod"]["node"], vm["mode"]) for vm in claim["vms"]] == [("db", "node-b", "required")]
    assert [(ticket["type"], ticket["node"]) for ticket in found["volume"]["tickets"]] == [("csi-attacher", "node-b")]
    verdicts = {node["name"]: node["reason"] for node in found["nodes"]}
    assert (verdicts["node-b"], verdicts["node-a"]) == ("NodeFeasible", "NodeAffinityMismatch")
    assert "zone-1" in json.dumps(found["affinity"]["before"])


def test_a_volume_that_is_not_there(explain: Run) -> None:
    """The real API server's 404 for an object, in Longhorn's namespace."""
    code, out, err = explain("volume/nope")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: volume/nope: no Volume nope in namespace {LONGHORN} of ")


def test_a_user_without_rights_on_pods_learns_which_permission_is_missing(explain: Run, viewer: User) -> None:
    """RBAC's own words for each of them: the VMs' pods, the tickets, the pod that there is, the StorageClass."""
    code, out, _ = explain(ASKED, viewer)
    found = json.loads(out)
    assert (code, found["decision"], found["reason"]) == (1, "unchanged", "VolumeLookupFailed")
    notes = "\n".join(found["notes"])
    for verb, resource in (
        ("list", "pods"),
        ("get", "pods"),
        ("get", "volumeattachments"),
        ("get", "storageclasses"),
        ("get", "settings"),
    ):
        assert f'User "{viewer.name}" cannot {verb} resource "{resource}"' in notes
    assert "you may not read every object that explain needs" in notes


def test_a_share_manager_pod_that_the_webhook_has_steered(
    explain: Run, plane: ControlPlane, installed: Installed
) -> None:
    """Steered by the server and bound by the scheduler, it is explained as Longhorn made it: to the same decision."""
    installed.enable()
    with installed.serving() as server:
        until_watched(server)
        installed.until_called()
        pod = plane.api.create(cold_start.encrypted())
    installed.disable()
    try:
        bound = plane.api.wait_for(pod, lambda found: bool(found and found["spec"].get("nodeName")), what="bound")
        code, out, err = explain(f"pod/share-manager-{VOLUME} -n {LONGHORN}")
        _, next_start, _ = explain(ASKED)
    finally:
        plane.api.delete(pod)
    found, decision = json.loads(out), pod["metadata"]["annotations"][builders.DECISION]
    assert (code, err, bound and bound["spec"]["nodeName"]) == (0, "", "node-b")
    assert decision.startswith("preferred on node-b: ConsumerOnNode: ")
    assert (found["annotation"], found["affinity"]["before"]) == (decision, None)
    assert found["affinity"]["after"] == bound["spec"]["affinity"]
    shown = {"name": f"share-manager-{VOLUME}", "phase": "Pending", "node": "node-b", "decision": decision}
    assert found["running"] == json.loads(next_start)["running"] == [shown]
    assert PASSPHRASE not in out + err + next_start
