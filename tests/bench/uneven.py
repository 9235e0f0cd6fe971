"""A cluster of uneven load, and the VMs in it whose share-managers are about to start, as objects to be created.

Pure: which node is how full, and which VM is where, follows from the random numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from support.control_plane.kube_api import Object
from support.objects import builders

_IMAGE: Final = builders.share_manager_pod("any")["spec"]["containers"][0]["image"]
_IMAGE_BYTES: Final = 350_000_000
_CPUS: Final = 64
_MEMORY_MIB: Final = 512 * 1024
_PODS: Final = 250
_LEAST_PERCENT, _MOST_PERCENT = 10, 95  # of a node that its pods request
_WITH_IMAGE: Final = 0.5  # of all nodes, as the next one
_SHUNNED: Final = 0.1
_TAINT: Final = "example.com/to-be-replaced:PreferNoSchedule"


class UnevenNode(NamedTuple):
    """A node, and what makes the scheduler like it or not."""

    name: str
    cpu_percent: int
    memory_percent: int
    has_image: bool
    is_shunned: bool
    """It has a PreferNoSchedule taint; a share-manager pod does not tolerate it."""


class ColdStart(NamedTuple):
    """A VM that was given a node, and whose share-manager pod is about to be created."""

    vm: str
    volume: str
    node: UnevenNode

    @property
    def pod(self) -> str:
        """The name of the share-manager pod."""
        return f"share-manager-{self.volume}"


def nodes(count: int, random: Random) -> list[UnevenNode]:
    """So many nodes, from nearly empty to nearly full."""
    made = []
    for number in range(count):
        cpu = random.randint(_LEAST_PERCENT, _MOST_PERCENT)
        memory = min(_MOST_PERCENT, max(_LEAST_PERCENT, cpu + random.randint(-20, 20)))
        has_image, is_shunned = random.random() < _WITH_IMAGE, random.random() < _SHUNNED
        made.append(UnevenNode(f"node-{number:04}", cpu, memory, has_image, is_shunned))
    return made


def cold_starts(among: Sequence[UnevenNode], count: int, random: Random) -> list[ColdStart]:
    """So many VMs, each on any of these nodes."""
    chosen = random.choices(among, k=count)
    return [ColdStart(f"vm-{number:03}", _volume(number), node) for number, node in enumerate(chosen)]


def _volume(number: int) -> str:
    return f"pvc-{number * 2654435761 % 2**32:08x}-6d02-4c3d-9d3e-0123456789ab"


def objects(cluster: Iterable[UnevenNode], starts: Iterable[ColdStart]) -> Iterator[Object]:
    """All that is there when a share-manager pod is created: what fills the nodes is bound already."""
    for described in cluster:
        yield _node(described)
        yield _filler(described)
        yield builders.longhorn_node(described.name)
        yield builders.instance_manager_pod(described.name)
    for start in starts:
        yield builders.persistent_volume_claim(start.vm, volume_name=start.volume)
        yield builders.persistent_volume(start.volume, claim=start.vm)
        yield builders.share_manager(start.volume, state="stopped", ownerID="")
        yield builders.volume_attachment(start.volume, [("csi-attacher", start.node.name)])
        yield _launcher(start)


def share_manager_pod(start: ColdStart, affinity: Object | None = None) -> Object:
    """The pod as Longhorn creates it: it requests nothing."""
    return builders.share_manager_pod(start.volume, phase=None, **({"affinity": affinity} if affinity else {}))


def _node(described: UnevenNode) -> Object:
    node = builders.node(
        described.name,
        taints=[_TAINT] if described.is_shunned else [],
        labels={"topology.kubernetes.io/zone": f"zone-{int(described.name[-1]) % 3}"},
    )
    amounts = {"cpu": str(_CPUS), "memory": f"{_MEMORY_MIB}Mi", "pods": str(_PODS)}
    images = [{"names": [_IMAGE], "sizeBytes": _IMAGE_BYTES}] if described.has_image else []
    node["status"] |= {"capacity": amounts, "allocatable": dict(amounts), "images": images}
    return node


def _filler(described: UnevenNode) -> Object:
    cpu, memory = described.cpu_percent * _CPUS * 10, described.memory_percent * _MEMORY_MIB // 100
    container = {
        "name": "filler",
        "image": "none",
        "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"filler-{described.name}", "namespace": builders.NAMESPACE},
        "spec": {"nodeName": described.name, "containers": [container]},
    }


def _launcher(start: ColdStart) -> Object:
    pod = builders.vm_pod(
        start.vm,
        node=start.node.name,
        claims=[start.vm],
        labels={"vm.kubevirt.io/name": start.vm},
    )
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "256Mi"}}
    return pod
