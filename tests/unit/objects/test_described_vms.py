"""What files say of VirtualMachines and VirtualMachineInstances, and of who uses a volume."""

from __future__ import annotations

from collections.abc import Sequence

from support.fakes.views import cluster
from support.objects.builders import NAMESPACE, node
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.view import NoObject, VolumeUsers
from webhook.objects.cluster import Cluster

DB = NamespacedName(NAMESPACE, "db01")
OF_DB = refs.virtual_machine(DB), refs.virtual_machine_instance(DB)
DISK = NamespacedName(NAMESPACE, "disk")


def vms_of(described: Cluster, claim: NamespacedName) -> Sequence[str]:
    """Return the VMs that name a claim, of files that say which VMs exist."""
    users = described.users_of("pvc-disk", claim)
    assert not users.unknown
    return users.vms


def test_files_without_vms_do_not_say_that_there_are_none() -> None:
    """The files for a claim and its share-manager need not describe the VMs, too."""
    described = cluster(node("node-a"), vms=False)
    assert list(map(described.get, OF_DB)) == [NoObject.UNAVAILABLE] * 2
    assert described.users_of("pvc-disk", DISK).unknown == "no VirtualMachine is described"
    assert described.read_error(OF_DB[1]) == "no VirtualMachineInstance is described"


def test_files_with_some_vms_have_all() -> None:
    """A name that is not there is not found."""
    described = cluster(virtual_machine("other", ["theirs"]), virtual_machine_instance("other", ["theirs"]))
    found = (*map(described.get, OF_DB), described.users_of("pvc-disk", DISK))
    assert found == (NoObject.NOT_FOUND, NoObject.NOT_FOUND, VolumeUsers([], [], {}))


def test_an_instance_and_its_vm_are_one() -> None:
    """By its owner, whatever their names are. VMs of another namespace name another claim."""
    described = cluster(
        virtual_machine("a", ["disk"]),
        virtual_machine_instance("a-1", ["disk"], vm="a"),
        virtual_machine("b", ["disk"], namespace="elsewhere"),
    )
    assert vms_of(described, DISK) == ["a"]
    assert vms_of(described, NamespacedName("elsewhere", "disk")) == ["b"]


def test_templates_of_stopped_vms_and_instances_without_a_vm_count() -> None:
    """Both can use the claim. One kind is enough for an answer."""
    alone = virtual_machine_instance("alone", ["disk"], vm=None)
    assert vms_of(cluster(alone), DISK) == ["alone"]
    assert cluster(alone).get(OF_DB[0]) is NoObject.NOT_FOUND
    assert vms_of(cluster(alone, virtual_machine("stopped", ["disk"])), DISK) == ["alone", "stopped"]


def test_a_vm_that_can_not_be_read_is_left_out() -> None:
    """The other VMs are known."""
    broken = virtual_machine("broken", ["disk"])
    broken["spec"]["template"]["spec"]["volumes"] = 7
    described = cluster(broken, virtual_machine("db01", ["disk"]))
    assert described.get(refs.virtual_machine(NamespacedName(NAMESPACE, "broken"))) is NoObject.NOT_FOUND
    assert vms_of(described, DISK) == ["db01"]
