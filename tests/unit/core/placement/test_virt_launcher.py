"""What the pod of a VM gets in a large cluster, beyond the rows of tests/cases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import convert
from support.fakes.views import ViewWithGaps, cluster
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import disk, served

from webhook.core import refs
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, NoObject, Ref

CLAIM = "PersistentVolumeClaim"
NAMES = [f"node-{number:03}" for number in range(120)]
FLEET = [
    *map(builders.node, NAMES),
    *disk("disk"),
    *served("disk", NAMES[0]),
    virtual_machine_instance(claims=["disk"]),
]


def placed(
    view: ClusterView, opt_in: str = "true", policy: Policy | None = None, claims: Sequence[str] = ("disk",)
) -> Pin:
    """Return the decision for the pod of the VM."""
    pod = convert(builders.virt_launcher_pod(claims=claims, opt_in=opt_in), Pod)
    found = place_virt_launcher(pod, builders.NAMESPACE, view, policy or Policy())
    assert isinstance(found, Pin)
    return found


def test_without_short_lists_a_preference_stands_alone() -> None:
    """The operator's choice, for a cluster with an autoscaler."""
    view = cluster(*FLEET, virtual_machine())
    found = [placed(view, "preferred", Policy(shortlist=allowed)) for allowed in (True, False)]
    assert [len(each.shortlist) for each in found] == [64, 0]


def test_stale_evidence_gives_a_preference_and_its_reason() -> None:
    """Evidence that can have changed is not good enough to require a node."""
    found = placed(ViewWithGaps(cluster(*FLEET, virtual_machine()), {}, staleness="ShareManager, last known 42 s ago"))
    assert (found.required, found.nodes, found.why.reason) == ((), (NAMES[0],), Reason.EVIDENCE_NOT_CONFIRMED)
    assert found.why.sentence.endswith("did not confirm it: ShareManager, last known 42 s ago")


def test_after_a_failed_start_there_is_no_short_list() -> None:
    """A short list requires, too: the scheduler may choose any node, however large the cluster is."""
    fine, failed = (cluster(*FLEET, virtual_machine(start_failures=failures)) for failures in (0, 1))
    assert [(bool(each.required), each.shortlist) for each in map(placed, (fine, failed))] == [(True, ()), (False, ())]
    assert placed(fine, "preferred").shortlist
    assert not placed(failed, "preferred").shortlist


def test_for_a_claim_that_another_vm_names_there_is_no_short_list() -> None:
    """Else all VMs that share a library would run on a few nodes."""
    found = placed(cluster(*FLEET, virtual_machine(), virtual_machine("other", ["disk"])))
    assert (found.required, found.shortlist) == ((), ())


def test_for_a_claim_that_is_being_deleted_nothing_is_required() -> None:
    """kube-scheduler holds the pod until another claim has the name, and the volume of that one can be anywhere."""
    deleted = {"deletionTimestamp": "2026-11-01T00:00:00Z"}
    fleet = [each | {"metadata": each["metadata"] | (deleted if each["kind"] == CLAIM else {})} for each in FLEET]
    found = placed(cluster(*fleet, virtual_machine()))
    assert (found.required, found.shortlist, found.nodes) == ((), (), (NAMES[0],))
    what = "claim disk, which is being deleted"
    assert found.why == Reason.RULE_NOT_EVALUATED.why(what=what, plugin="VolumeBinding")


MANAGER, MANAGER_POD = refs.share_manager("second"), refs.share_manager_pod("second")


@pytest.mark.parametrize("lost", [[MANAGER, MANAGER_POD], [MANAGER_POD], [refs.node(NAMES[1])]])
def test_what_can_not_be_read_of_a_second_disk_leaves_no_node_alone_required(lost: list[Ref]) -> None:
    """With both disks known the VM may run on the nodes of both. Less knowledge must not bind it to one of them."""
    whole = cluster(*FLEET, *disk("second"), *served("second", NAMES[1]), virtual_machine())
    known, less = (
        placed(ViewWithGaps(whole, dict.fromkeys(gaps, NoObject.UNAVAILABLE)), claims=["disk", "second"])
        for gaps in ((), lost)
    )
    assert known.required == tuple(NAMES[:2])
    assert (less.required, less.why.reason.columns.unread) == ((), True)
