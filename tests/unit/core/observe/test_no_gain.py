"""VMs that would gain nothing at their next start, because the node of their share-manager excludes them."""

from __future__ import annotations

from typing import Any

import pytest
from support.fakes.views import cluster
from support.objects import builders
from support.objects.fleets import disk, launcher, served

from webhook.core.observe.next_start import next_start_of

Object = dict[str, Any]
NODES = [builders.node("node-a"), builders.node("node-b", taints=["storage-only=true:NoSchedule"])]
NO_NFS = {"RequiredPackages": "PackagesNotInstalled: Missing packages: [nfs-common]"}
CONFINED = {"shareManagerNodeSelector": "storage:true"}


def confined(name: str) -> list[Object]:
    """A claim and its volume, whose StorageClass confines its share-manager."""
    return [
        builders.persistent_volume_claim(name, volume_name=f"pv-{name}"),
        builders.persistent_volume(f"pv-{name}", claim=name, handle=name, attributes=CONFINED),
    ]


def test_a_node_on_which_no_vm_starts_promises_no_gain() -> None:
    """Kubelet there can mount no volume of a share-manager (longhorn/longhorn#2058)."""
    node = builders.longhorn_node("node-b", conditions=NO_NFS)
    objects = [
        *disk("root"),
        *served("root", "node-b"),
        builders.node("node-b"),
        builders.longhorn_node("node-a"),
        node,
    ]
    start = next_start_of(launcher("root", nodeName="node-a"), cluster(*objects))
    assert (start.gains, start.cause) == (False, "the node has no NFS client")
    assert start.sentence.startswith("would gain nothing now: ")


@pytest.mark.parametrize(
    ("objects", "followed"),
    [
        pytest.param(confined("root"), False, id="confined"),
        pytest.param(disk("root"), True, id="not confined"),
        pytest.param([*confined("root"), *disk("data")], True, id="one of two"),
    ],
)
def test_a_share_manager_that_is_confined_may_be_unable_to_follow(objects: list[Object], *, followed: bool) -> None:
    """By the StorageClass parameter shareManagerNodeSelector, which its volume has."""
    stopped = [builders.share_manager(name, state="stopped") for name in ("root", "data")]
    view = cluster(*NODES, *map(builders.longhorn_node, ("node-a", "node-b")), *objects, *stopped)
    start = next_start_of(launcher("root", "data", nodeName="node-a"), view)
    assert (start.followed, start.gains) == (followed, followed)
