"""How long a pod and its lists may be. A pod beyond that is not evaluated, and stays unchanged.

While the webhook decides, it answers nothing else: no other call, and no probe of the kubelet. An evaluation takes time
by the lengths of these lists, for each node that it looks at. No pod of KubeVirt comes near these lengths; anybody who
may create a pod can exceed them. A list that is not here is not walked over, or once only.
Invariant: a pod beyond these limits is admitted within 50 ms of CPU.

Anybody who may create a pod can also fill any field with 1.5 MB. To skip 1 MB of JSON takes 1 to 3 ms. To decode it
takes 10 to 30 ms, and the values can take ten times the bytes. So the long fields of a pod are not decoded (LargePod).
The fields are those of WatchedSpec and ObjectMeta. Invariant: a pod of PART_BYTES_MAX in all has no long field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct, field

from webhook.core.api.admission_review import decoded
from webhook.core.api.affinity import PREFERRED, Affinity, PodAffinityTerm
from webhook.core.api.container import ContainerRequests
from webhook.core.api.meta import ApiType, ObjectMeta
from webhook.core.api.pod import Pod, WatchedSpec
from webhook.core.reasons import Reason, Why

PART_BYTES_MAX: Final = 64 * 1024
"""Of one field, as far as it is read. A launcher pod usually has 20 KB; of one with 256 volumes 30 KB are read."""

PATCH_BYTES_MAX: Final = 128 * 1024
"""What the webhook adds to an affinity at most: 64 KiB of copied terms (affinity.most_nodes), names of 64 nodes in
them at 320 bytes, and 80 preferences at 400 bytes."""

CONTAINERS_MAX: Final = 600
"""A VirtualMachineInstance has 256 volumes at most (kubevirt pkg/virt-operator, the CRD's maxItems), and KubeVirt adds
fewer of its own. Each volume and each of 256 interfaces can bring one container."""

NOT_COMPARED: Final = "kubevirt-scheduler/not-compared"  # no field of Kubernetes has a slash in its name

_UNLIMITED: Final = "metadata.annotations"  # the API server takes 256 KiB, and only a few are read
VOLUMES_PATH: Final = "spec.volumes"
TERMS_PATH: Final = "spec.affinity.podAntiAffinity"  # its required terms
_AFFINITY: Final = "spec.affinity"
_PATCHED: Final = ("spec.affinity.nodeAffinity", "spec.affinity.podAffinity")

_Parts = dict[str, Raw]
_FIELDS: Final[msgspec.json.Decoder[_Parts | None]] = msgspec.json.Decoder(_Parts | None)
_LIST: Final[msgspec.json.Decoder[list[Raw] | None]] = msgspec.json.Decoder(list[Raw] | None)


class LargePod(Struct, gc=False):
    """v1.Pod, with its fields as JSON. Its status is read whole: only kubelets and controllers write it."""

    WHOLE_BYTES_MAX: ClassVar[int] = PART_BYTES_MAX

    metadata: _Parts = field(default_factory=dict)
    spec: _Parts = field(default_factory=dict)
    status: Raw = Raw(b"null")

    def long_parts(self) -> dict[str, int]:
        """Return the fields that are too long, each with its length in bytes, as far as it is read.

        Raises:
            msgspec.DecodeError: a field has a wrong type.
        """
        return {
            path: len(part) for path, part in self._parts().items() if len(part) > PART_BYTES_MAX and path != _UNLIMITED
        }

    def shortened(self) -> bytes:
        """Return the pod as JSON without its long fields, whose names are in NOT_COMPARED.

        An affinity may be longer by what the webhook adds: a pod for which a node was required loses no field.

        Raises:
            msgspec.DecodeError: a field has a wrong type.
        """
        parts, long = self._parts(), self.long_parts()
        left_out = [
            path for path, length in long.items() if path not in _PATCHED or length > PART_BYTES_MAX + PATCH_BYTES_MAX
        ]
        for path in left_out:
            del parts[path]
        spec = _within("spec", parts) | {"affinity": _within(_AFFINITY, parts)}
        pod = {"metadata": _within("metadata", parts), "spec": spec, "status": self.status, NOT_COMPARED: left_out}
        return msgspec.json.encode(pod)

    def _parts(self) -> _Parts:
        """Return what is read of each field, by its path."""
        found = _named("metadata", self.metadata, ObjectMeta) | _named("spec", self.spec, WatchedSpec)
        for path in ("spec.containers", "spec.initContainers"):
            if len(found.get(path, b"")) > PART_BYTES_MAX:
                found[path] = _containers(found[path])
        found |= _named(_AFFINITY, _fields(found.pop(_AFFINITY, None)), Affinity)
        if TERMS_PATH in found:
            terms = _fields(found[TERMS_PATH])
            terms.pop(PREFERRED, None)
            found[TERMS_PATH] = _encoded(terms)
        return found


def _named(path: str, fields: _Parts, read: type[ApiType]) -> _Parts:
    """Return the fields that `read` has, by their paths."""
    return {f"{path}.{name}": fields[name] for name in read.__struct_encode_fields__ if name in fields}


def _fields(part: Raw | None) -> _Parts:
    return (_FIELDS.decode(part) if part else None) or {}


def _containers(part: Raw) -> Raw:
    """Return what is read of a list of containers; the list itself if there are too many containers."""
    containers, read = _LIST.decode(part) or [], ContainerRequests.__struct_encode_fields__
    if len(containers) > CONTAINERS_MAX:
        return part
    return _encoded([{name: each[name] for name in read if name in each} for each in map(_fields, containers)])


def _encoded(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def _within(path: str, parts: _Parts) -> dict[str, Any]:
    """Return the fields directly within `path`, by their names."""
    return {key: part for name, part in parts.items() for parent, _, key in [name.rpartition(".")] if parent == path}


WHOLE_BYTES_MAX: Final = 768 * 1024
"""The pod of a longer review is not decoded. A launcher pod has 10 to 20 KB and 256 KiB of annotations at most, which
escapes can double. The slowest 768 KiB, deeply nested objects, take 30 ms to decode."""

_LARGE_POD: Final = msgspec.json.Decoder(LargePod)


def _long_parts(pod: bytes | Raw) -> dict[str, int]:
    """Return the long fields of a pod. Raises all that msgspec raises: Raw has bytes that no decoder has looked at."""
    return _LARGE_POD.decode(pod).long_parts()


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


def why_affinity_too_long(affinity: Raw) -> Why | None:
    """Return that the affinity of a pod has too many bytes to be decoded; None if it has not.

    Each of its fields is decoded, and copied for the proof of a patch: for 64 KiB that takes 25 ms at most.
    """
    if len(affinity) <= PART_BYTES_MAX:
        return None
    return Reason.POD_TOO_LARGE.why(count=len(affinity), what=f"bytes in {_AFFINITY}", most=PART_BYTES_MAX)


def why_field_too_long(pod: bytes | Raw) -> Why | None:
    """Return which field of a pod has too many bytes; None if none has. The pod was decoded before.

    A watch does not read such a field. So the webhook would not count this pod on its way to a node.
    """
    if len(pod) <= PART_BYTES_MAX:
        return None
    for path, length in decoded(_long_parts, pod, "request.object").items():
        return Reason.POD_TOO_LARGE.why(count=length, what=f"bytes in {path}", most=PART_BYTES_MAX)
    return None


def why_too_large(pod: Pod) -> Why | None:
    """Return which list of the pod is too long; None if none is."""
    for what, length in _lengths(pod).items():
        if length > _LIMITS[what]:
            return Reason.POD_TOO_LARGE.why(count=length, what=what, most=_LIMITS[what])
    return None
