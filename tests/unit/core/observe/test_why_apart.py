"""What made a VM apart from its share-manager, by the times and annotations of both pods; and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.objects import builders
from support.objects.fleets import EARLY, LATER, disk, launcher, scheduled, served, the_row, unschedulable

from webhook.core.api.pod import Pod
from webhook.core.observe.vm_status import State

Object = dict[str, Any]
NO_ROOM = "NoRoom: node node-b has too little of memory: 4Gi is requested, 62Gi of 64Gi is taken"
PREFERRED = builders.recorded("preferred", "node-b", because=NO_ROOM)
NO_NODE = "ShareManagerNoNode: claim root: the share-manager of volume root is on no node yet (state stopped)"
NO_CONSUMER = "NoConsumer: claim root: no known virt-launcher pod uses it"
TARGET = {"labels": {"kubevirt.io/migrationJobUID": "3f"}}


def vm(decision: Mapping[str, str] | None = None, at: str | None = EARLY, *claims: str, **parts: Any) -> Pod:
    """The pod of a VM on node-a since this time, with this decision; it uses claim root."""
    return launcher(
        *(claims or ("root",)),
        created=at,
        annotations=decision,
        nodeName="node-a",
        conditions=[scheduled(at)] if at else [],
        **parts,
    )


def share_manager(
    at: str | None = EARLY, decision: Mapping[str, str] | None = None, node: str = "node-b"
) -> list[Object]:
    """The share-manager of claim root, on node-b since this time; with None its pod shows no time."""
    manager, pod = served("root", node, at or EARLY)
    if at is None:
        del pod["status"]["conditions"]
    if decision is not None:
        pod["metadata"]["annotations"] |= decision
    return [*disk("root"), manager, pod]


CAUSES = [
    pytest.param(
        vm(PREFERRED, LATER),
        share_manager(),
        f"VmPreferred: at the VM's start the webhook preferred node-b and did not require it, because {NO_ROOM}; "
        "kube-scheduler chose node node-a",
        id="preferred, and the scheduler chose another node",
    ),
    pytest.param(
        vm(builders.recorded("preferred", "node-b"), LATER),
        share_manager(),
        "VmPreferred: at the VM's start the webhook preferred node-b and did not require it, because a reason that "
        "the annotation does not show; kube-scheduler chose node node-a",
        id="preferred, and the reason is cut off",
    ),
    pytest.param(
        vm(builders.recorded("unchanged", because="NodeNotReady: node node-b is not Ready"), LATER),
        share_manager(),
        "VmLeftUnchanged: at the VM's start the webhook left the pod unchanged, because NodeNotReady: node node-b is "
        "not Ready",
        id="left unchanged",
    ),
    pytest.param(
        vm(None, LATER),
        share_manager(),
        "VmWebhookNotAsked: the VM's pod has no decision of the webhook: at the VM's start the API server did not "
        "call the webhook, or got no answer",
        id="the webhook was not asked",
    ),
    pytest.param(
        vm(None, LATER, **TARGET),
        share_manager(),
        f"VmLiveMigrated: the VM was live-migrated to node node-a at {LATER}, and the share-manager of claim root "
        "stayed on node node-b; for the target the webhook was not asked",
        id="live-migrated",
    ),
    pytest.param(
        vm(builders.recorded("required", "node-a")),
        share_manager(LATER),
        "VmShareManagerMoved: at the VM's start the webhook required node-a; since then the share-manager of claim "
        f"root has taken node node-b at {LATER}",
        id="the share-manager moved",
    ),
    pytest.param(
        vm(builders.recorded("required", "node-a")),
        share_manager(None),
        "VmShareManagerMoved: at the VM's start the webhook required node-a; since then the share-manager of claim "
        "root has taken node node-b",
        id="the share-manager moved, and when is not known",
    ),
    pytest.param(
        vm(builders.recorded("preferred", "node-c", because=NO_ROOM)),
        share_manager(LATER),
        f"VmShareManagerMoved: at the VM's start the webhook preferred node-c, because {NO_ROOM}; since then the "
        f"share-manager of claim root has taken node node-b at {LATER}",
        id="the share-manager moved after a preference",
    ),
    pytest.param(
        vm(None, EARLY, **TARGET),
        share_manager(LATER),
        f"VmShareManagerMoved: the VM was live-migrated to node node-a at {EARLY}; since then the share-manager of "
        f"claim root has taken node node-b at {LATER}",
        id="live-migrated, and then the share-manager moved",
    ),
    pytest.param(
        vm(builders.recorded("unchanged", because=NO_NODE)),
        share_manager(LATER, builders.recorded("preferred", "node-a", owner=builders.SHARE_MANAGER_UID)),
        f"VmShareManagerLater: the share-manager of claim root took node node-b at {LATER}, after the VM had taken "
        f"node node-a at {EARLY}; for the share-manager's pod the webhook preferred node-a, and kube-scheduler chose "
        "another node",
        id="a cold start, and the scheduler did not follow",
    ),
    pytest.param(
        vm(builders.recorded("unchanged", because=NO_NODE)),
        share_manager(LATER, builders.recorded("unchanged", because=NO_CONSUMER, owner=builders.SHARE_MANAGER_UID)),
        f"VmShareManagerLater: the share-manager of claim root took node node-b at {LATER}, after the VM had taken "
        f"node node-a at {EARLY}; for the share-manager's pod the webhook left the pod unchanged, because NoConsumer: "
        "claim root: no known virt-launcher pod uses it",
        id="a cold start, and the share-manager was not steered",
    ),
    pytest.param(
        vm(None),
        share_manager(LATER),
        f"VmShareManagerLater: the share-manager of claim root took node node-b at {LATER}, after the VM had taken "
        f"node node-a at {EARLY}; the share-manager's pod has no decision of the webhook",
        id="a cold start without the webhook",
    ),
    pytest.param(
        vm(builders.recorded("required", "node-a", "node-b"), EARLY, "root", "data"),
        [*share_manager(), *disk("data"), *served("data", "node-a")],
        "VmShareManagersSpread: the VM's share-managers are on nodes node-a and node-b, and the VM can be on only one "
        "of them",
        id="share-managers on two nodes",
    ),
    pytest.param(
        vm(builders.recorded("required", "node-c"), LATER),
        share_manager(),
        f"VmCauseNotKnown: it is not known why: the VM is on node node-a since {LATER}, the share-manager of claim "
        f"root on node node-b since {EARLY}, and at the VM's start the webhook required node-c",
        id="required elsewhere",
    ),
    pytest.param(
        vm(builders.recorded("preferred", "node-c", "node-d", "node-e", more=2, because="NoRoom: y"), LATER),
        share_manager(),
        f"VmCauseNotKnown: it is not known why: the VM is on node node-a since {LATER}, the share-manager of claim "
        f"root on node node-b since {EARLY}, and at the VM's start the webhook preferred node-c, node-d, node-e and 2 "
        "more, because NoRoom: y",
        id="preferred nodes that the annotation does not name",
    ),
    pytest.param(
        vm(None, None),
        share_manager(),
        "VmCauseNotKnown: it is not known why: the VM is on node node-a since an unknown time, the share-manager of "
        f"claim root on node node-b since {EARLY}, and at the VM's start the webhook left no decision",
        id="nothing shows since when the VM is there",
    ),
    pytest.param(
        vm(builders.recorded("unchanged", because="NodeNotReady: x"), LATER),
        share_manager(None),
        f"VmCauseNotKnown: it is not known why: the VM is on node node-a since {LATER}, the share-manager of claim "
        "root on node node-b since an unknown time, and at the VM's start the webhook left the pod unchanged, because "
        "NodeNotReady: x",
        id="nothing shows since when the share-manager is there",
    ),
    pytest.param(
        vm(None, LATER, **TARGET),
        share_manager(None),
        f"VmCauseNotKnown: it is not known why: the VM is on node node-a since {LATER}, the share-manager of claim "
        "root on node node-b since an unknown time, and at the VM's live migration the webhook was not asked",
        id="live-migrated, and nothing shows since when the share-manager is there",
    ),
]


@pytest.mark.parametrize(("pod", "objects", "why"), CAUSES)
def test_a_vm_that_is_apart_says_what_made_it_so(pod: Pod, objects: list[Object], why: str) -> None:
    """By evidence only; where the facts do not tell the cause, it says so and names them."""
    found = the_row(pod, objects=objects)
    assert (found.state, found.why) == (State.APART, why)


def test_what_asks_for_a_vm_can_be_newer_than_its_pod() -> None:
    """The label of a Namespace was perhaps not there at the VM's start: then the webhook left the pod."""
    pod = vm(None, LATER)
    (pod.metadata.annotations or {}).pop(builders.OPT_IN)
    meta = {"name": "vms", "labels": {builders.OPT_IN: "true"}}
    labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    found = the_row(pod, objects=[*share_manager(), labelled])
    assert found.because.endswith("did not call the webhook, or got no answer, or the VM did not ask yet")


def test_a_stuck_vm_needs_a_new_pod() -> None:
    """The sentence has the command for each runStrategy."""
    pinned = launcher("root", annotations=builders.written("node-b"), conditions=[unschedulable(LATER)])
    found = the_row(pinned, objects=share_manager())
    assert (found.state, found.remedy) == (
        State.STUCK,
        (
            "delete the pod, because the webhook decides again for a new one: kubectl delete pod "
            "virt-launcher-db01-aaaaa -n vms; if the VM's runStrategy is Manual, also: virtctl start db01 -n vms; if "
            "it is Once, instead: kubectl delete virtualmachineinstance db01 -n vms"
        ),
    )
