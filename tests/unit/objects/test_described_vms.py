"""What files say of VMs, of who uses a volume, and of a cluster-autoscaler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.drivers.serving import write_cluster
from support.fakes.views import cluster
from support.objects.builders import NAMESPACE, Object, cluster_autoscaler_status, node
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.view import NoObject, VolumeUsers
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument
from webhook.objects.kinds import VIRTUAL_MACHINE

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


def test_a_name_that_is_not_there_leads_to_the_object_that_is() -> None:
    """An instance without a VM, the same name in another namespace, a similar name, or none of these."""
    alone = virtual_machine_instance("alone", (), vm=None)
    objects = cluster(alone, virtual_machine("db01", ()), virtual_machine("web", (), namespace="other")).objects
    hints = {
        "alone": "there is a VirtualMachineInstance without one: vmi/alone",
        "web": "there is one in namespace other: -n other",
        "db02": "did you mean db01?",
        "zzz": "check the name and --namespace",
    }
    for name, hint in hints.items():
        with pytest.raises(
            BadDocument, match=rf"^vm/x: no VirtualMachine {name} in namespace vms of .*{re.escape(hint)}$"
        ):
            objects.find(VIRTUAL_MACHINE, name, NAMESPACE, "vm/x")


def bundle_of(*lists: Object) -> Object:
    """The record of a bundle with these lists."""
    record = {"cluster": "c", "at": "2026-01-01T00:00:00Z", "namespace": "vms", "longhornNamespace": "longhorn-system"}
    return {
        "apiVersion": "kubevirt-scheduler/v1",
        "kind": "Bundle",
        "metadata": {"name": "bundle"},
        "lists": lists,
        **record,
    }


@pytest.mark.parametrize("where", ["longhorn-system", "storage"])
def test_a_bundle_says_where_longhorn_is(where: str, tmp_path: Path) -> None:
    """Its reader need not know it. Otherwise no volume of it would have a ShareManager."""
    manager = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "ShareManager",
        "metadata": {"name": "v", "namespace": where},
    }
    file = write_cluster(tmp_path / "bundle.json", [{**bundle_of(), "longhornNamespace": where}, manager])
    found = Cluster.load(file, longhorn_namespace="longhorn-system")
    assert not isinstance(found.get(refs.share_manager("v")), NoObject)


@pytest.mark.parametrize("at", ["", "yesterday", "2026-01-01T00:00:00"])
def test_a_bundle_of_no_time_is_refused(at: str, tmp_path: Path) -> None:
    """Its ages count until then."""
    file = write_cluster(tmp_path / "bundle.json", [{**bundle_of(), "at": at}])
    with pytest.raises(BadDocument, match=r"Bundle bundle: at: expected a time such as 2026-11-28T09:30:00Z$"):
        Cluster.load(file, longhorn_namespace="longhorn-system")


LISTED = {"resource": "configmaps"}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "vms"}}
AUTOSCALERS: dict[str, tuple[list[Object], bool]] = {
    "nothing": ([], False),
    "another ConfigMap": ([OTHER], False),
    "cluster-autoscaler": ([cluster_autoscaler_status()], True),
    "one in each of two namespaces": ([cluster_autoscaler_status(), cluster_autoscaler_status("scaling")], True),
    "a node of Karpenter": ([node("n1", labels={"karpenter.sh/nodepool": "default"})], True),
    "a bundle without one": ([bundle_of(LISTED)], False),
    "a bundle that could not list it": ([bundle_of({**LISTED, "problem": "403 Forbidden"})], True),
    "a bundle without the list": ([bundle_of()], True),
}


@pytest.mark.parametrize(("objects", "seen"), AUTOSCALERS.values(), ids=AUTOSCALERS)
def test_whether_files_show_an_autoscaler(objects: list[Object], seen: bool) -> None:  # noqa: FBT001 - a row's
    """If that is not known, it counts as seen."""
    assert cluster(*objects).has_autoscaler() is seen


@pytest.mark.parametrize("metadata", [{"name": "app"}, None, "app"])
def test_other_config_maps_are_ignored_whatever_is_in_them(metadata: Any) -> None:
    """Files of users have many. Two of one name, or one without metadata, are not errors."""
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": 5}
    assert cluster(other, other).objects.ignored == {"v1 ConfigMap": 2}
