"""VMs that would gain nothing at their next start, because the node of their share-manager excludes them."""

from __future__ import annotations

from typing import Any

import pytest
from support.fakes.views import cluster
from support.objects import builders
from support.objects.fleets import disk, launcher, served

from webhook.core.api.pod import Pod
from webhook.core.observe.candidate import Candidate, candidate_of
from webhook.core.opt_in import Policy

Object = dict[str, Any]
NODES = [builders.node("node-a"), builders.node("node-b", taints=["storage-only=true:NoSchedule"])]
CONFINED = {"shareManagerNodeSelector": "storage:true"}


def found(pod: Pod, objects: list[Object]) -> Candidate:
    """The candidate of a VM's pod, beside a storage node."""
    candidate = candidate_of(
        [pod], cluster(*NODES, *map(builders.longhorn_node, ("node-a", "node-b")), *objects), Policy()
    )
    assert isinstance(candidate, Candidate)
    return candidate


def confined(name: str) -> list[Object]:
    """A claim and its volume, whose StorageClass confines its share-manager."""
    return [
        builders.persistent_volume_claim(name, volume_name=f"pv-{name}"),
        builders.persistent_volume(f"pv-{name}", claim=name, handle=name, attributes=CONFINED),
    ]


def test_a_node_that_excludes_the_vm_promises_no_gain() -> None:
    """As a storage node does, on which share-managers are kept (longhorn/longhorn#7872)."""
    candidate = found(launcher("root", nodeName="node-a"), objects=[*disk("root"), *served("root", "node-b")])
    start = candidate.next_start
    assert (start.decision, start.reason, start.rejected, start.gains) == (
        "preferred",
        "TaintNotTolerated",
        True,
        False,
    )


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
    candidate = found(launcher("root", "data", nodeName="node-a"), objects=[*objects, *stopped])
    assert (candidate.next_start.followed, candidate.next_start.gains) == (followed, followed)
