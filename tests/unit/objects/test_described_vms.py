"""What files say of VirtualMachines and VirtualMachineInstances."""

from __future__ import annotations

from support.fakes.views import cluster
from support.objects.builders import NAMESPACE, node
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.view import NoObject

DB = NamespacedName(NAMESPACE, "db01")
OF_DB = refs.virtual_machine(DB), refs.virtual_machine_instance(DB)
DISK = NamespacedName(NAMESPACE, "disk")


def test_files_without_vms_do_not_say_that_there_are_none() -> None:
    """The files for a claim and its share-manager need not describe the VMs, too."""
    described = cluster(node("node-a"))
    found = (*map(described.get, OF_DB), described.virtual_machines_of(DISK))
    assert found == (NoObject.UNAVAILABLE,) * 3


def test_files_with_some_vms_have_all() -> None:
    """A name that is not there is not found."""
    described = cluster(virtual_machine("other", ["theirs"]), virtual_machine_instance("other", ["theirs"]))
    found = (*map(described.get, OF_DB), described.virtual_machines_of(DISK))
    assert found == (NoObject.NOT_FOUND, NoObject.NOT_FOUND, [])


def test_an_instance_and_its_vm_are_one() -> None:
    """By its owner, whatever their names are. VMs of another namespace name another claim."""
    described = cluster(
        virtual_machine("a", ["disk"]),
        virtual_machine_instance("a-1", ["disk"], vm="a"),
        virtual_machine("b", ["disk"], namespace="elsewhere"),
    )
    assert described.virtual_machines_of(DISK) == ["a"]
    assert described.virtual_machines_of(NamespacedName("elsewhere", "disk")) == ["b"]


def test_templates_of_stopped_vms_and_instances_without_a_vm_count() -> None:
    """Both can use the claim. One kind is enough for an answer."""
    alone = virtual_machine_instance("alone", ["disk"], vm=None)
    assert cluster(alone).virtual_machines_of(DISK) == ["alone"]
    assert cluster(alone).get(OF_DB[0]) is NoObject.UNAVAILABLE
    assert cluster(alone, virtual_machine("stopped", ["disk"])).virtual_machines_of(DISK) == ["alone", "stopped"]


def test_a_vm_that_can_not_be_read_is_left_out() -> None:
    """The other VMs are known."""
    broken = virtual_machine("broken", ["disk"])
    broken["spec"]["template"]["spec"]["volumes"] = 7
    described = cluster(broken, virtual_machine("db01", ["disk"]))
    assert described.get(refs.virtual_machine(NamespacedName(NAMESPACE, "broken"))) is NoObject.NOT_FOUND
    assert described.virtual_machines_of(DISK) == ["db01"]
