"""What a VM's own objects say of its claims and its starts, and what is read for that."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace
from support.fakes.views import MISSING, ViewWithGaps, cluster, missing_after
from support.objects.builders import NAMESPACE, virt_launcher_pod, vm_pod
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.facts import ClaimUse, Finding, start_failures, vm_as_described, with_uses
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

DB = NamespacedName(NAMESPACE, "db01")
VM, VMI = ObjectRef(Kind.VIRTUAL_MACHINE, DB), ObjectRef(Kind.VIRTUAL_MACHINE_INSTANCE, DB)
DISK = Finding(claim="disk", volume_handle="pvc-disk", why=Reason.SHARE_MANAGER_POD.why(claim="disk"))
POD = convert(virt_launcher_pod(claims=["disk"]), Pod)


def used(view: Any, pod: Pod = POD) -> Finding:
    """The finding of `disk` with its use."""
    vm = vm_as_described(pod, NAMESPACE, view)
    return with_uses([DISK], (), vm, NAMESPACE, view)[0]


def hotpluggable(view: Any) -> list[str]:
    """The hotpluggable claims of the VM."""
    vm = vm_as_described(POD, NAMESPACE, view)
    return vm.hotpluggable_claims


def test_the_instance_is_read_first_and_then_the_vm() -> None:
    """The VirtualMachine of the instance's name is asked for only if there is no instance."""
    there = cluster(virtual_machine(), virtual_machine_instance())
    assert missing_after(ViewWithGaps(there, {VMI: MISSING, VM: MISSING}), used) == [VMI]
    assert missing_after(ViewWithGaps(there, {VM: MISSING}), used) == []
    assert missing_after(ViewWithGaps(there, {VMI: NoObject.NOT_FOUND, VM: MISSING}), used) == [VM]


@pytest.mark.parametrize(("ref", "kind"), [(VM, "VirtualMachine"), (VMI, "VirtualMachineInstance")])
def test_what_can_not_be_read_of_a_vm_is_not_known(ref: Ref, kind: str) -> None:
    """Neither a failed start, nor a start that went well."""
    there = cluster(virtual_machine(start_failures=2), virtual_machine_instance())
    unlisted = ViewWithGaps(there, {ref: NoObject.UNAVAILABLE})
    assert start_failures(POD, NAMESPACE, unlisted) == (None, f"{kind} db01: 503 for a test")


def test_hotpluggable_claims_are_read_of_the_instance() -> None:
    """Those that the VM runs with. Without an instance those of its template; none where VMs can't be listed."""
    there = cluster(
        virtual_machine(claims=["disk"], hotpluggable=["later"]),
        virtual_machine_instance(claims=["disk"], hotpluggable=["now"]),
    )
    assert hotpluggable(there) == ["now"]
    assert hotpluggable(ViewWithGaps(there, {VMI: NoObject.NOT_FOUND})) == ["later"]
    assert hotpluggable(ViewWithGaps(there, {VM: NoObject.UNAVAILABLE, VMI: NoObject.UNAVAILABLE})) == []


def test_who_else_uses_a_volume_can_be_unknown() -> None:
    """Then the disk counts as the VM's own, as far as is known, and no node is required for it."""
    found = used(cluster(vms=False))
    assert (found.use, found.unsure) == (ClaimUse.OWN, "no VirtualMachine is described")
    firm = replace(found, firm=True, node="node-a")
    assert firm.why_not_required == Reason.EVIDENCE_NOT_CONFIRMED.why(staleness="no VirtualMachine is described")
    assert found.why_not_required == found.why


def test_who_shares_a_claim_is_named_in_the_order_of_the_names() -> None:
    """Not in that of their arrival, which is another one in each replica."""
    pods = [vm_pod(name, claims=["disk"], node="n1") for name in ("web", "app")]
    found = [used(cluster(virtual_machine_instance(vm=None), *each)).others for each in (pods, pods[::-1])]
    assert found == [("pod virt-launcher-app", "pod virt-launcher-web")] * 2
