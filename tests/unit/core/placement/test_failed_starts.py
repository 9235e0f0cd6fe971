"""What a VM gets whose last starts failed, beyond the rows of tests/cases/vm-facts.yaml."""

from __future__ import annotations

from msgspec import convert
from support.fakes.views import MISSING, ViewWithGaps, cluster
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import disk, served

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.view import Kind, ObjectRef

POD = convert(builders.virt_launcher_pod(claims=["disk"]), Pod)
VM = ObjectRef(Kind.VIRTUAL_MACHINE, NamespacedName(builders.NAMESPACE, "db01"))
NAMES = [f"node-{number:03}" for number in range(120)]
FLEET = [
    *map(builders.node, NAMES),
    *disk("disk"),
    *served("disk", NAMES[0]),
    virtual_machine_instance(claims=["disk"]),
]


def test_the_virtualmachine_is_read_before_a_node_is_required() -> None:
    """The cache of instances can be ahead of that of VirtualMachines."""
    view = ViewWithGaps(cluster(*FLEET, virtual_machine()), {VM: MISSING})
    place_virt_launcher(POD, builders.NAMESPACE, view, Policy())
    assert list(view.missing) == [VM]


def test_after_a_failed_start_there_is_no_short_list() -> None:
    """A short list requires, too: the scheduler may choose any node, however large the cluster is."""
    for failures, required in ((0, True), (1, False)):
        view = cluster(*FLEET, virtual_machine(start_failures=failures))
        found = place_virt_launcher(POD, builders.NAMESPACE, view, Policy())
        assert isinstance(found, Pin)
        assert (bool(found.required), found.shortlist) == (required, ())
    preferred = convert(builders.virt_launcher_pod(claims=["disk"], opt_in="preferred"), Pod)
    for failures, listed in ((0, True), (1, False)):
        view = cluster(*FLEET, virtual_machine(start_failures=failures))
        found = place_virt_launcher(preferred, builders.NAMESPACE, view, Policy())
        assert isinstance(found, Pin)
        assert bool(found.shortlist) is listed


def test_for_a_claim_that_another_vm_names_there_is_no_short_list() -> None:
    """Else all VMs that share a library would run on a few nodes."""
    view = cluster(*FLEET, virtual_machine(), virtual_machine("other", ["disk"]))
    found = place_virt_launcher(POD, builders.NAMESPACE, view, Policy())
    assert isinstance(found, Pin)
    assert (found.required, found.shortlist) == ((), ())
