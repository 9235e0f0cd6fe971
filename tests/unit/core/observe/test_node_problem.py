"""Why no VM can start on a node, and which nodes a VM's row names."""

from __future__ import annotations

from typing import Any

import pytest
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders

from webhook.core.api.meta import NamespacedName
from webhook.core.observe.remedy import why_no_vm_starts
from webhook.core.view import Kind, NoObject, ObjectRef

READY = builders.node("node-a")
WITHOUT_NFS, UNREAD, NO_CRYPT = (
    builders.longhorn_node("node-a", conditions=conditions)
    for conditions in (
        {"RequiredPackages": "PackagesNotInstalled: Missing packages: [nfs-common]"},
        {"NFSClientInstalled": "CheckKernelConfigFailed: no configuration"},
        {"RequiredPackages": "PackagesNotInstalled: Missing packages: [cryptsetup]"},
    )
)


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        pytest.param([READY], None, id="Ready, in a cluster without Longhorn's nodes"),
        pytest.param([READY, builders.longhorn_node("node-a")], None, id="Ready, and Longhorn too"),
        pytest.param([], "node node-a does not exist", id="no such node"),
        pytest.param([builders.node("node-a", ready="False")], "node node-a is not Ready", id="not Ready"),
        pytest.param([builders.node("node-a", deleting=True)], "node node-a is being deleted", id="deleted"),
        pytest.param([builders.node("node-a", cordoned=True)], "node node-a is cordoned", id="cordoned"),
        pytest.param(
            [READY, builders.longhorn_node("node-b")],
            "Longhorn is not ready on node node-a (nodes.longhorn.io is absent), so no volume can be attached there",
            id="without Longhorn",
        ),
        pytest.param(
            [READY, WITHOUT_NFS, builders.longhorn_node("node-b")],
            "node node-a lacks an NFS client (nodes.longhorn.io, condition RequiredPackages: nfs-common), "
            "so nothing that a share-manager serves can be mounted there",
            id="without an NFS client",
        ),
        pytest.param([READY, WITHOUT_NFS], None, id="no node has one"),
        pytest.param([READY, UNREAD, builders.longhorn_node("node-b")], None, id="Longhorn could not look"),
        pytest.param([READY, NO_CRYPT, builders.longhorn_node("node-b")], None, id="some VMs start"),
    ],
)
def test_the_first_thing_that_forbids_every_vm_is_reported(objects: list[dict[str, Any]], problem: str | None) -> None:
    """A node that nothing forbids has no problem."""
    why = why_no_vm_starts("node-a", cluster(*objects))
    assert (why and why.sentence) == problem


@pytest.mark.parametrize("kind", [Kind.NODE, Kind.LONGHORN_NODE])
def test_a_node_that_could_not_be_read_is_not_called_ready(kind: Kind) -> None:
    """The reason has the error. Longhorn's node counts, too."""
    ref = ObjectRef(kind, NamespacedName("", "node-a"))
    found = cluster(READY, builders.longhorn_node("node-a"))
    why = why_no_vm_starts("node-a", ViewWithGaps(found, {ref: NoObject.UNAVAILABLE}))
    assert why is not None
    assert why.sentence == f"node node-a: its {kind} could not be read (503 for a test)"
