"""A large cluster's objects as JSON, of the size that a real API server sends.

Object number i of a kind belongs to VM number i. Names and uids have the same width for every i, so that requests and
answers about them have the same length too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import stored
from support.objects import builders

PODS: Final = "/api/v1/pods"
_TENANTS: Final = 500
_APPS: Final = 400
_KUBEVIRT: Final = "/apis/kubevirt.io/v1"
_FIRST_VERSION: Final = 1_000_000


class Scale(NamedTuple):
    """How many of each; a ShareManager and a volume for each claim, a CSINode for each node, the claims' namespaces.

    `pods`: of share-managers. `virt_launchers`: of VMs, with a claim each. `others`: of nobody that we know.
    """

    claims: int
    pods: int
    nodes: int
    launchers: int = 0
    others: int = 0

    @property
    def objects(self) -> int:
        """How many a cache of everything holds."""
        of_vms = 3 * self.launchers  # with its VirtualMachine and its VirtualMachineInstance
        return 3 * self.claims + self.pods + 3 * self.nodes + self.namespaces + of_vms + self.others

    @property
    def namespaces(self) -> int:
        """The number of namespaces that have claims."""
        return min(self.claims, _TENANTS)


class Collection(NamedTuple):
    """One kind: its path at the API server, and its objects."""

    path: str
    count: int
    render: Callable[[int], bytes]

    def objects(self) -> Iterator[bytes]:
        """Each object's JSON."""
        return map(self.render, range(self.count))


def version(collection: int, index: int) -> int:
    """An object's resourceVersion: unique, and in the order of numbers."""
    return _FIRST_VERSION + collection * 1_000_000 + index


def last_version() -> int:
    """Higher than any object's."""
    return version(12, 0)


def namespace(index: int) -> str:
    """The namespace of a VM."""
    return f"tenant-{index % _TENANTS:03}"


def claim_name(index: int) -> str:
    """The claim of a VM."""
    return f"vm-{index:06}-disk"


def vm_name(index: int) -> str:
    """The name of the VM with this number."""
    return f"vm-{index:06}"


def is_together(index: int) -> bool:
    """Whether a VM is with its share-manager: nine of ten are."""
    return index % 10 > 0


def collections(scale: Scale) -> tuple[Collection, ...]:
    """Everything in the cluster."""
    longhorn = f"/apis/{builders.LONGHORN_API_VERSION}/namespaces/{builders.LONGHORN_NAMESPACE}"

    def collection(
        number: int,
        path: str,
        count: int,
        make: Callable[[], builders.Object],
        *,
        after: Callable[[], builders.Object] | None = None,
    ) -> Collection:
        """Of `count` objects; those that come after them in the same collection are all the other pods."""
        template = json.dumps(make(), separators=(",", ":")).encode()
        other = json.dumps(after(), separators=(",", ":")).encode() if after else template

        def render(i: int) -> bytes:
            return (template if i < count else other) % {
                b"claim": claim_name(i).encode(),
                b"namespace": namespace(i).encode(),
                b"uid": uid_of(i),
                b"owner": b"node-%04d" % (i % scale.nodes),
                b"node": b"node-%04d" % i,
                b"pod": b"other-%06d" % i,
                b"app": b"app-%03d" % (i % _APPS),
                b"vm": vm_name(i).encode(),
                b"vm_node": b"node-%04d" % ((i if is_together(i) else i + 1) % scale.nodes),
                b"zone": b"zone-%d" % (i % 3),
                b"version": b"%d" % version(number, i),
                b"ip": b"10.%d.%d.%d" % (100 + i // 65536, i // 256 % 256, i % 256),
            }

        return Collection(path, count + (scale.others if after else 0), render)

    return (
        collection(0, "/api/v1/persistentvolumeclaims", scale.claims, stored.claim),
        collection(1, "/api/v1/persistentvolumes", scale.claims, stored.volume),
        collection(2, "/api/v1/nodes", scale.nodes, stored.node),
        collection(3, f"{longhorn}/sharemanagers", scale.claims, stored.share_manager),
        collection(4, f"{longhorn}/nodes", scale.nodes, stored.longhorn_node),
        collection(
            5,
            f"/api/v1/namespaces/{builders.LONGHORN_NAMESPACE}/pods",
            scale.pods,
            stored.share_manager_pod,
        ),
        collection(6, PODS, scale.launchers, stored.launcher, after=stored.other_pod),
        collection(7, "/apis/storage.k8s.io/v1/csinodes", scale.nodes, stored.csi_node),
        collection(8, "/api/v1/namespaces", scale.namespaces, stored.namespace),
        collection(9, "/api/v1/configmaps", 0, stored.namespace),  # no cluster-autoscaler
        collection(10, f"{_KUBEVIRT}/virtualmachines", scale.launchers, stored.virtual_machine),
        collection(11, f"{_KUBEVIRT}/virtualmachineinstances", scale.launchers, stored.virtual_machine_instance),
    )


def uid_of(index: int) -> bytes:
    """The uid of each object of this number."""
    return b"%08x-%04x-4%03x-8%03x-%012x" % (index * 2654435761 % 2**32, index * 40503 % 65536, 7, 11, index)
