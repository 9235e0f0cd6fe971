"""From a hotpluggable claim, which no virt-launcher pod has, to the VM that it is attached to."""

from __future__ import annotations

from typing import Any

from support.fakes.views import Patchy, cluster
from support.objects.builders import persistent_volume, persistent_volume_claim, vm_pod, volume_attachment
from support.objects.builders_kubevirt import virtual_machine

from webhook.core.api.meta import NamespacedName
from webhook.core.evidence.consumers import find_vms
from webhook.core.opt_in import Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, NoObject

Object = dict[str, Any]
OBJECTS = [
    persistent_volume_claim("disk", volume_name="h"),
    persistent_volume("h", claim="disk"),
    volume_attachment("h", [("csi-attacher", "n1")]),
    virtual_machine("a", hotpluggable=["disk"]),
]


class WithoutVMs(Patchy):
    """A view of a cluster in which VMs can't be listed."""

    def virtual_machines_of(self, claim: NamespacedName) -> NoObject:  # noqa: ARG002 - of the protocol
        """Return that this is not known."""
        return NoObject.UNAVAILABLE


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
