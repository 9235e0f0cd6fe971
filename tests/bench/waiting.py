"""VMs, each with a claim of its own, whose share-manager is on one of the nodes; and the pods that start them."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from sample import sample_pod
from support.control_plane.kube_api import Object
from support.objects import builders

NODES: Final = 50
_MEMORY_MIB: Final = 2048
_SINGLE: Final = "single"
_DEVICES: Final = ("kvm", "tun", "vhost-net")
_ROOM: Final = {  # for all VMs of a run
    "cpu": "1000",
    "memory": "8Ti",
    "pods": "10000",
    **{f"devices.kubevirt.io/{device}": "10000" for device in _DEVICES},
}


def nodes() -> list[Object]:
    """The nodes, with Longhorn on each, and a claim without a share-manager."""
    names = [_node(number) for number in range(NODES)]
    modes = ["ReadWriteOnce"]
    return [
        *(builders.node(name, allocatable=_ROOM) for name in names),
        *map(builders.longhorn_node, names),
        builders.persistent_volume_claim(_SINGLE, volume_name=_SINGLE, access_modes=modes),
        builders.persistent_volume(_SINGLE, claim=_SINGLE, handle=_SINGLE, access_modes=modes),
    ]


def disk(number: int, on: int = NODES) -> list[Object]:
    """The claim of the VM of this number, and its share-manager, which is on one of the first `on` nodes."""
    claim, volume, node = f"disk-{number}", f"pvc-{number}", _node(number % on)
    return [
        builders.persistent_volume_claim(claim, volume_name=volume),
        builders.persistent_volume(volume, claim=claim, handle=volume),
        builders.share_manager(volume, state="running", ownerID=node),
        builders.share_manager_pod(volume, nodeName=node),
    ]


def pod_of(number: int, label: str = "virt-launcher") -> Object:
    """The pod as virt-controller creates it; no two VMs are of the same size."""
    pod = {**sample_pod([f"disk-{number}", _SINGLE, _SINGLE]), "apiVersion": "v1", "kind": "Pod"}
    spec, metadata = pod["spec"], pod["metadata"]
    compute = next(each for each in spec["containers"] if each["name"] == "compute")
    compute["resources"]["requests"]["memory"] = f"{_MEMORY_MIB + number}Mi"
    uid, name = str(UUID(int=number + 1)), f"vm-{number}"
    metadata |= {"namespace": builders.NAMESPACE, "generateName": f"virt-launcher-{name}-"}
    metadata["labels"] |= {"kubevirt.io": label, "kubevirt.io/created-by": uid, "vm.kubevirt.io/name": name}
    metadata["ownerReferences"][0] |= {"name": name, "uid": uid}
    return pod


def _node(number: int) -> str:
    return f"node-{number:02}"
