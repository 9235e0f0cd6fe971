"""How long the lists of a pod may be. A pod with a longer list is not evaluated, and stays unchanged.

While the webhook decides, it answers nothing else: no other call, and no probe of the kubelet. An evaluation takes time
by the lengths of these lists, for each node that it looks at. No pod of KubeVirt comes near these lengths; anybody who
may create a pod can exceed them. A list that is not here is not walked over, or once only.
Invariant: a pod beyond these limits is admitted within 50 ms of CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from webhook.core.api.admission_review import decoded
from webhook.core.api.affinity import PodAffinityTerm
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


_LIMITS: Final[Mapping[str, int]] = {
    "volumes": 512,
    "containers": CONTAINERS_MAX,
    # Two requests and two limits for each container, and the devices and ports of the VM: at 0.5 us each.
    "requests, limits and ports": 4_000,
    # Searched for the VirtualMachineInstance at each step. KubeVirt writes one.
    "owners": 64,
    # Copied once, and sorted once. Users write some tens.
    "labels and annotations": 4_000,
    # These are compared with up to 160 nodes (webhook.core.placement.shortlist), at 0.15 us each. KubeVirt writes one
    # label for each feature of a CPU, 200 for a host model.
    "labels of the nodeSelector": 1_000,
    # A list of all nodes by name is the longest that is met. The webhook itself writes 64 terms.
    "requirements of the node affinity": 2_000,
    # Compared with the taints of a node, of which it has some: 0.3 us each. KubeVirt writes none.
    "tolerations": 64,
    # Compared with up to 110 pods of each node, at 0.15 us each. KubeVirt writes one, into a migration's target.
    "required terms between pods": 16,
    "labels and namespaces in terms between pods": 1_000,
    # Compared once with what an earlier answer wrote. The webhook writes 8.
    "preferred terms between pods": 256,
    # Searched once for a hard one.
    "topology spread constraints": 64,
}


def _lengths(pod: Pod) -> Mapping[str, int]:
    """Return how long each list of `_LIMITS` is."""
    meta, spec, affinity = pod.metadata, pod.spec, pod.spec.affinity
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    amounts = len(spec.overhead or ())
    for resources in (spec.resources, *[each.resources for each in containers]):
        if resources:
            amounts += len(resources.requests or ()) + len(resources.limits or ())
    for container in containers:
        amounts += len(container.ports or ())
    required: list[PodAffinityTerm] = []
    preferred = 0
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if terms:
            required += terms.required or ()
            preferred += len(terms.preferred or ())
    return {
        "volumes": len(spec.volumes or ()),
        "containers": len(containers),
        "requests, limits and ports": amounts,
        "owners": len(meta.owner_references or ()),
        "labels and annotations": len(meta.labels or ()) + len(meta.annotations or ()),
        "labels of the nodeSelector": len(spec.node_selector or ()),
        "requirements of the node affinity": _items(affinity.node_affinity) if affinity else 0,
        "tolerations": len(spec.tolerations or ()),
        "required terms between pods": len(required),
        "labels and namespaces in terms between pods": sum(map(_items, required)),
        "preferred terms between pods": preferred,
        "topology spread constraints": len(spec.topology_spread_constraints or ()),
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
    for field, length in decoded(_LARGE_POD, pod, "request.object").long_parts().items():
        return Reason.POD_TOO_LARGE.why(count=length, what=f"bytes in {field}", most=PART_BYTES_MAX)
    return None


def why_too_large(pod: Pod) -> Why | None:
    """Return which list of the pod is too long; None if none is."""
    for what, length in _lengths(pod).items():
        if length > _LIMITS[what]:
            return Reason.POD_TOO_LARGE.why(count=length, what=what, most=_LIMITS[what])
    return None
