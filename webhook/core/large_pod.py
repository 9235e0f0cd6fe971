"""A pod with many bytes, before its fields are decoded: each field as the bytes that it has.

Anybody who may create a pod can fill any field with 1.5 MB. To skip 1 MB of JSON takes 1 to 3 ms. To decode it takes 10
to 30 ms, and the values can take ten times the bytes. So the long fields of a pod are not decoded. The fields are those
of WatchedSpec and ObjectMeta. Invariant: a pod of PART_BYTES_MAX in all has no long field.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, Struct, field

from webhook.core.api.affinity import PREFERRED, Affinity
from webhook.core.api.container import ContainerRequests
from webhook.core.api.meta import ApiType, ObjectMeta
from webhook.core.api.pod import WatchedSpec

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
