"""A pod with many bytes, before its fields are decoded: each field as the bytes that it has.

Anybody who may create a pod can fill any field with 1.5 MB. To skip 1 MB of JSON takes 1 to 3 ms. To decode it takes 10
to 30 ms, and the values can take ten times the bytes. So the long fields of a pod are not decoded. Invariant: a pod of
PART_BYTES_MAX in all has no long field.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from webhook.core.api.affinity import REQUIRED

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
_PATCHED: Final = ("spec.affinity.nodeAffinity", "spec.affinity.podAffinity")
_Part = Raw | UnsetType


class _Parts(Struct, rename="camel", omit_defaults=True, gc=False):
    def named(self, path: str) -> dict[str, Raw]:
        """Return the fields that are JSON and not null, by their paths."""
        names = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        parts = ((encoded, getattr(self, name)) for name, encoded in names)
        return {f"{path}.{encoded}": part for encoded, part in parts if isinstance(part, Raw)}


class _Metadata(_Parts, gc=False):
    name: _Part = UNSET
    namespace: _Part = UNSET
    resource_version: _Part = UNSET
    creation_timestamp: _Part = UNSET
    deletion_timestamp: _Part = UNSET
    labels: _Part = UNSET
    annotations: _Part = UNSET
    owner_references: _Part = UNSET


class _Container(_Parts, gc=False):
    """What is read of a container, without its arguments, environment, ports and mounts."""

    name: _Part = UNSET
    resources: _Part = UNSET
    restart_policy: _Part = UNSET


class _PodAntiAffinity(_Parts, gc=False):
    required: _Part = field(name=REQUIRED, default=UNSET)


class _Affinity(_Parts, gc=False):
    node_affinity: _Part = UNSET
    pod_affinity: _Part = UNSET
    pod_anti_affinity: _PodAntiAffinity | None = None


class _Spec(_Parts, gc=False):
    node_name: _Part = UNSET
    scheduler_name: _Part = UNSET
    scheduling_gates: _Part = UNSET
    node_selector: _Part = UNSET
    affinity: _Affinity | None = None
    volumes: _Part = UNSET
    containers: _Part = UNSET
    init_containers: _Part = UNSET
    overhead: _Part = UNSET
    resources: _Part = UNSET


_RAW_LIST: Final = msgspec.json.Decoder(list[Raw] | None)
_CONTAINER: Final = msgspec.json.Decoder(_Container)


class LargePod(Struct, gc=False):
    """v1.Pod, with its fields as JSON. Its status is read whole: only kubelets and controllers write it."""

    WHOLE_BYTES_MAX: ClassVar[int] = PART_BYTES_MAX

    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)
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
        spec = _within("spec", parts) | {"affinity": _within("spec.affinity", parts)}
        pod = {"metadata": _within("metadata", parts), "spec": spec, "status": self.status, NOT_COMPARED: left_out}
        return msgspec.json.encode(pod)

    def _parts(self) -> dict[str, Raw]:
        """Return what is read of each field, by its path."""
        found = {**self.metadata.named("metadata"), **self.spec.named("spec")}
        for path in ("spec.containers", "spec.initContainers"):
            if len(found.get(path, b"")) > PART_BYTES_MAX:
                found[path] = _containers(found[path])
        affinity = self.spec.affinity or _Affinity()
        found |= affinity.named("spec.affinity")
        if affinity.pod_anti_affinity is not None:
            found[TERMS_PATH] = _encoded(affinity.pod_anti_affinity)
        return found


def _containers(part: Raw) -> Raw:
    """Return what is read of a list of containers; the list itself if there are too many containers."""
    containers = _RAW_LIST.decode(part) or ()
    return part if len(containers) > CONTAINERS_MAX else _encoded([_CONTAINER.decode(each) for each in containers])


def _encoded(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


def _within(path: str, parts: dict[str, Raw]) -> dict[str, Any]:
    """Return the fields directly within `path`, by their names."""
    return {key: part for name, part in parts.items() for parent, _, key in [name.rpartition(".")] if parent == path}
