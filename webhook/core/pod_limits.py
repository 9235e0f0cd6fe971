"""How long the lists of a pod may be. A pod with a longer list is not evaluated, and stays unchanged.

While the webhook decides, it answers nothing else: no other call, and no probe of the kubelet. An evaluation takes time
by the lengths of these lists, for each node that it looks at. No pod of KubeVirt comes near these lengths; anybody who
may create a pod can exceed them. A list that is not here is not walked over, or once only.
Invariant: a pod beyond these limits is admitted within 50 ms of CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.core.api.affinity import InterPodTerms
from webhook.core.api.container import Container
from webhook.core.api.meta import OwnerReference
from webhook.core.api.pod import Pod
from webhook.core.large_pod import CONTAINERS_MAX, PART_BYTES_MAX, LargePod
from webhook.core.reasons import Reason, Why

WHOLE_BYTES_MAX: Final = 768 * 1024
"""The pod of a longer review is not decoded. A launcher pod has 10 to 20 KB and 256 KiB of annotations at most, which
escapes can double. The slowest 768 KiB, deeply nested objects, take 30 ms to decode."""


_LARGE_POD: Final = msgspec.json.Decoder(LargePod)


def _items(value: object) -> int:
    """Return how many items the lists and mappings of a struct have, with those of the structs in them."""
    if isinstance(value, Struct):
        return sum(_items(getattr(value, field)) for field in value.__struct_fields__)
    if isinstance(value, list):
        return len(value) + sum(map(_items, value))
    return len(value) if isinstance(value, dict) else 0


def _containers(pod: Pod) -> Sequence[Container]:
    return *(pod.spec.containers or ()), *(pod.spec.init_containers or ())


def _amounts(pod: Pod) -> int:
    containers = _containers(pod)
    resources = [pod.spec.resources, *(container.resources for container in containers)]
    amounts = sum(len(each.requests or ()) + len(each.limits or ()) for each in resources if each)
    return len(pod.spec.overhead or ()) + amounts + sum(len(container.ports or ()) for container in containers)


def _owners(pod: Pod) -> Sequence[OwnerReference]:
    return pod.metadata.owner_references or ()


def _between_pods(pod: Pod) -> Iterable[InterPodTerms]:
    affinity = pod.spec.affinity
    return filter(None, (affinity.pod_affinity, affinity.pod_anti_affinity)) if affinity else ()


_LIMITS: Final[Mapping[str, tuple[int, Callable[[Pod], int]]]] = {
    "volumes": (512, lambda pod: len(pod.spec.volumes or ())),
    "containers": (CONTAINERS_MAX, lambda pod: len(_containers(pod))),
    # Two requests and two limits for each container, and the devices and ports of the VM: at 0.5 us each.
    "requests, limits and ports": (4_000, _amounts),
    # Searched for the VirtualMachineInstance at each step. KubeVirt writes one.
    "owners": (64, lambda pod: len(_owners(pod))),
    # Copied once, and sorted once. Users write some tens.
    "labels and annotations": (4_000, lambda pod: len(pod.metadata.labels or ()) + len(pod.metadata.annotations or ())),
    # These are compared with up to 160 nodes (webhook.core.placement.shortlist), at 0.15 us each. KubeVirt writes one
    # label for each feature of a CPU, 200 for a host model.
    "labels of the nodeSelector": (1_000, lambda pod: len(pod.spec.node_selector or ())),
    # A list of all nodes by name is the longest that is met. The webhook itself writes 64 terms.
    "requirements of the node affinity": (2_000, lambda pod: _items(pod.spec.node_affinity)),
    # Compared with the taints of a node, of which it has some: 0.3 us each. KubeVirt writes none.
    "tolerations": (64, lambda pod: len(pod.spec.tolerations or ())),
    # Compared with up to 110 pods of each node, at 0.15 us each. KubeVirt writes one, into a migration's target.
    "required terms between pods": (16, lambda pod: sum(len(each.required or ()) for each in _between_pods(pod))),
    "labels and namespaces in terms between pods": (
        1_000,
        lambda pod: sum(_items(term) for each in _between_pods(pod) for term in each.required or ()),
    ),
    # Compared once with what an earlier answer wrote. The webhook writes 8.
    "preferred terms between pods": (256, lambda pod: sum(len(each.preferred or ()) for each in _between_pods(pod))),
    # Searched once for a hard one.
    "topology spread constraints": (64, lambda pod: len(pod.spec.topology_spread_constraints or ())),
}


def why_too_long(body: bytes) -> Why | None:
    """Return that the review is too long for its pod to be decoded; None if it is not."""
    if len(body) <= WHOLE_BYTES_MAX:
        return None
    return Reason.POD_TOO_LARGE.why(count=len(body), what="bytes in its review", most=WHOLE_BYTES_MAX)


def why_field_too_long(pod: bytes | Raw) -> Why | None:
    """Return which field of a pod has too many bytes; None if none has. The pod was decoded before.

    A watch does not read such a field. So the webhook would not count this pod on its way to a node.
    """
    if len(pod) <= PART_BYTES_MAX:
        return None
    for field, length in _LARGE_POD.decode(pod).long_parts().items():
        return Reason.POD_TOO_LARGE.why(count=length, what=f"bytes in {field}", most=PART_BYTES_MAX)
    return None


def why_too_large(pod: Pod) -> Why | None:
    """Return which list of the pod is too long; None if none is."""
    for what, (most, count) in _LIMITS.items():
        length = count(pod)
        if length > most:
            return Reason.POD_TOO_LARGE.why(count=length, what=what, most=most)
    return None
