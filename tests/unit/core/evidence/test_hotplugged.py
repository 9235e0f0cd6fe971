"""From a hotpluggable claim, which no virt-launcher pod has, to the VM that it is attached to."""

from __future__ import annotations

from msgspec import convert
from support.fakes.views import MISSING, ViewWithGaps, cluster
from support.objects.builders import (
    node,
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
    vm_pod,
    volume_attachment,
)
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.consumers import find_vms
from webhook.core.evidence.share_managers import find_share_managers
from webhook.core.opt_in import Policy
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, Kind, ObjectRef, VolumeUsers

OBJECTS = [
    persistent_volume_claim("disk", volume_name="h"),
    persistent_volume("h", claim="disk"),
    volume_attachment("h", [("csi-attacher", "n1")]),
    virtual_machine("a", hotpluggable=["disk"]),
]


class WithoutVMs(ViewWithGaps):
    """A view of a cluster in which VMs can't be listed."""

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:  # noqa: ARG002 - of the protocol
        """Return that this is not known."""
        return VolumeUsers(unknown="no right")


def found(view: ClusterView) -> list[tuple[Reason, str | None]]:
    """Return the reason and node of each finding."""
    findings = find_vms("h", view, Policy())
    assert isinstance(findings, list)
    return [(finding.why.reason, finding.node) for finding in findings]


def test_the_vm_of_a_hotpluggable_claim_is_found_on_the_node_of_the_ticket() -> None:
    """No virt-launcher pod uses the claim. Where VMs can't be listed, nothing leads to the VM."""
    there = cluster(*OBJECTS, vm_pod("a", node="n1", claims=[]))
    assert found(there) == [(Reason.CONSUMER_ON_NODE, "n1")]
    assert found(WithoutVMs(there, {})) == [(Reason.NO_CONSUMER, None)]


def test_another_vm_on_that_node_is_not_taken_for_it() -> None:
    """Its objects do not name the claim."""
    assert found(cluster(*OBJECTS, vm_pod("b", node="n1", claims=[]))) == [(Reason.NO_CONSUMER, None)]


VM, VMI = (
    ObjectRef(kind, NamespacedName("vms", "db01")) for kind in (Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE)
)
CLAIM = ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, NamespacedName("vms", "disk"))
SERVED = [
    *OBJECTS[:2],
    node("n1"),
    share_manager("h", state="running", ownerID="n1"),
    share_manager_pod("h", nodeName="n1"),
    virtual_machine("db01", ["disk"]),
    virtual_machine_instance("db01", claims=["disk"]),
]


def test_the_vm_and_the_claims_of_its_pod_are_read_at_once() -> None:
    """The VM's other claims are known after that."""
    pod = convert(virt_launcher_pod(claims=["disk"]), Pod)
    gaps = {VMI: MISSING, CLAIM: MISSING}
    view = ViewWithGaps(cluster(*SERVED), gaps)
    find_share_managers(pod, "vms", view)
    assert view.missing.keys() == {VMI, CLAIM}


def test_the_virtual_machine_is_read_for_its_failed_starts() -> None:
    """Its instance names it, and has no count."""
    pod = convert(virt_launcher_pod(claims=["disk"], opt_in="true"), Pod)
    view = ViewWithGaps(cluster(*SERVED), {VM: MISSING})
    place_virt_launcher(pod, "vms", view, Policy())
    assert list(view.missing) == [VM]
