"""VirtualMachine or VirtualMachineInstance -> the virt-launcher Pod that virt-controller would create from it.

The pod has the fields that core reads. A note names what does not follow from the object alone: nothing is guessed.
Rules: kubevirt pkg/virt-controller/services/{template,nodeselectorrenderer,rendervolumes}.go and
pkg/storage/backend-storage/backend-storage.go, v1.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from webhook.core.api.affinity import REQUIRED
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.meta import ObjectMeta
from webhook.core.api.storage import PersistentVolumeClaim
from webhook.core.api.virtual_machine import ChangedBlockTracking, VMIVolumeStatus
from webhook.core.observe.misplaced import TEMPLATE, misplaced
from webhook.explain.derive import notes as derive_notes
from webhook.explain.derive import requests
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects.api.kubevirt import Machine, VirtualMachine, VirtualMachineInstance, VMISpec, VMIStatus
from webhook.objects.fields import as_fields

_DROPPED_ANNOTATIONS: Final = (
    "kubectl.kubernetes.io",
    "kubevirt.io/storage-observed-api-version",
    "kubevirt.io/latest-observed-api-version",
)
_HOST_MODEL: Final = "host-model"
_HOST_PASSTHROUGH: Final = "host-passthrough"
_OBSOLETE_HOST_MODEL: Final = "node-labeller.kubevirt.io/obsolete-host-model"
_CARRIED_OVER: Final = ("tolerations", "topologySpreadConstraints", "resourceClaims")
_STATE: Final = "persistent-state-for"  # the label of a backend storage claim, and the start of its name
_STATE_VOLUME: Final = "vm-state"
_GENERATED: Final = r"-[a-z0-9]{5}"  # what the API server appends to a generateName, after KubeVirt's hyphen
_TRACKING: Final = ("Initializing", "Enabled")  # changed block tracking keeps its bitmaps in the backend storage


ASSUMED_UID: Final = "explained"
"""Of the owner of a derived pod: KubeVirt and Longhorn have the owner when they create the pod."""


class Derived(Struct, frozen=True, kw_only=True):
    """The pod as JSON; `notes` on the parts that are missing; `hints` on likely mistakes in the object."""

    pod: dict[str, Any]
    notes: list[str]
    hints: list[str]


class _VMI(Struct, frozen=True, kw_only=True):
    """A VMI, or the VMI that KubeVirt creates for a VirtualMachine. `fields` are those of the spec, as JSON."""

    name: str
    namespace: str
    meta: ObjectMeta
    spec: VMISpec
    fields: dict[str, Any]
    tracking: ChangedBlockTracking | None
    machine: Machine | None = None
    volume_status: Sequence[VMIVolumeStatus] = ()


def derive_virt_launcher(
    owner: VirtualMachine | VirtualMachineInstance, cluster: ClusterReader, namespace: str
) -> Derived:
    """Return the next virt-launcher pod of a VirtualMachine or VirtualMachineInstance.

    Args:
        owner: the object, which has a name.
        cluster: has the backend storage claim.
        namespace: of an object that names none.
    """
    vmi, notes, hints = _of_vm(owner, namespace) if isinstance(owner, VirtualMachine) else _of_vmi(owner, namespace)
    volumes = list(_volumes(vmi))
    if _needs_state(vmi):
        listed = cluster.claims(vmi.namespace)
        claim = _state_claim(vmi, listed.items)
        if claim is None:
            claim = f"{_STATE}-{vmi.name}-*"
            known = f"no claim {claim} exists; KubeVirt creates one at the first start"
            unknown = f"claim {claim} counts as absent, because the claims could not be listed ({listed.problem})"
            notes = [*notes, f"backend storage: {unknown if listed.problem else known}"]
        volumes.append(_volume(_STATE_VOLUME, claim))
    return Derived(
        pod=_pod(vmi, volumes),
        notes=[*notes, *derive_notes.not_derived(vmi.meta, vmi.fields)],
        hints=hints,
    )


def _of_vm(owner: VirtualMachine, namespace: str) -> tuple[_VMI, list[str], list[str]]:
    """The VMI that KubeVirt creates for a VirtualMachine, with notes and hints."""
    template, status = owner.spec.template, owner.status
    vmi = _VMI(
        name=owner.metadata.name or "",
        namespace=owner.metadata.namespace or namespace,
        meta=template.metadata or ObjectMeta(),
        spec=template.spec,
        fields=as_fields(template.spec),
        tracking=status.changed_block_tracking if status else None,
    )
    hints = misplaced(vmi.meta, owner.metadata, TEMPLATE)
    return vmi, [derive_notes.CLUSTER, *derive_notes.unexpanded(owner.spec)], list(hints)


def _of_vmi(found: VirtualMachineInstance, namespace: str) -> tuple[_VMI, list[str], list[str]]:
    """A VirtualMachineInstance, with notes and hints."""
    status = found.status or VMIStatus()
    vmi = _VMI(
        name=found.metadata.name or "",
        namespace=found.metadata.namespace or namespace,
        meta=found.metadata,
        spec=found.spec,
        fields=as_fields(found.spec),
        tracking=status.changed_block_tracking,
        machine=status.machine,
        volume_status=status.volume_status or (),
    )
    return vmi, [derive_notes.CLUSTER], list(misplaced(vmi.meta, None, "metadata"))


def _pod(vmi: _VMI, volumes: list[dict[str, Any]]) -> dict[str, Any]:
    raw = vmi.fields
    spec: dict[str, Any] = {"volumes": volumes, "nodeSelector": _node_selector(vmi)}
    spec["containers"] = requests.containers(raw)
    affinity = _affinity(raw.get("affinity"), _cpu_model(vmi.spec))
    if affinity is not None:
        spec["affinity"] = affinity
    spec.update({field: raw[field] for field in _CARRIED_OVER if raw.get(field) is not None})
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": vmi.name, "controller": True}
    kept = (vmi.meta.annotations or {}).items()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{VIRT_LAUNCHER}-{vmi.name}-",
            "namespace": vmi.namespace,
            "labels": {**(vmi.meta.labels or {}), LABEL_APP: VIRT_LAUNCHER},
            "annotations": {
                "kubevirt.io/domain": vmi.name,
                **{key: value for key, value in kept if not key.startswith(_DROPPED_ANNOTATIONS)},
            },
            "ownerReferences": [{**owner, "uid": ASSUMED_UID}],
        },
        "spec": spec,
    }


def _volumes(vmi: _VMI) -> Iterator[dict[str, Any]]:
    """The volumes with a claim, except those that were attached to the running VM."""
    plugged = {volume.name for volume in vmi.volume_status if volume.hotplug_volume is not None}
    for volume in vmi.spec.volumes or ():
        if volume.claim and volume.name not in plugged:
            yield _volume(volume.name or "", volume.claim)


def _volume(name: str, claim: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def _needs_state(vmi: _VMI) -> bool:
    tracked = bool(vmi.tracking and vmi.tracking.state in _TRACKING)
    return tracked or bool(vmi.spec.domain and vmi.spec.domain.keeps_state)


def _state_claim(vmi: _VMI, claims: Iterable[PersistentVolumeClaim]) -> str | None:
    """The backend storage claim: found by its label, else by the name of old versions, else by a generated name.

    The generated name is matched as a whole: a mere prefix would find the claim of VM db-two for VM db.
    """
    existing = [claim.metadata for claim in claims if not claim.metadata.deletion_timestamp]
    base = f"{_STATE}-{vmi.name}"
    labeled = (meta.name for meta in existing if meta.label(_STATE) == vmi.name)
    legacy = (meta.name for meta in existing if meta.name == base)
    pattern = re.compile(re.escape(base) + _GENERATED)
    generated = (meta.name for meta in existing if meta.label(_STATE) is None and pattern.fullmatch(meta.name or ""))
    return next(labeled, None) or next(legacy, None) or next(generated, None)


def _cpu_model(spec: VMISpec) -> str:
    cpu = spec.domain.cpu if spec.domain else None
    return (cpu.model if cpu else None) or _HOST_MODEL


def _node_selector(vmi: _VMI) -> dict[str, str]:
    """The node selector: KubeVirt's default, then the VMI's own, then the labels for its CPU model and machine type."""
    spec, model = vmi.spec, _cpu_model(vmi.spec)
    selector = {"kubevirt.io/schedulable": "true"}
    if spec.architecture:
        selector["kubernetes.io/arch"] = spec.architecture.lower()
    selector |= spec.node_selector or {}
    if model not in (_HOST_MODEL, _HOST_PASSTHROUGH):
        selector[f"cpu-model.node.kubevirt.io/{model}"] = "true"
    for found in (vmi.machine, spec.domain.machine if spec.domain else None):
        if found and found.type:
            selector[f"machine-type.node.kubevirt.io/{found.type}"] = "true"
            break
    return selector


def _affinity(own: dict[str, Any] | None, model: str) -> dict[str, Any] | None:
    """The VMI's affinity. For host-model, each required term also excludes nodes whose host model is obsolete.

    KubeVirt appends to empty terms, too. An empty term matches no node, but with this requirement it matches nodes.
    """
    if model != _HOST_MODEL:
        return own
    refusal = {"key": _OBSOLETE_HOST_MODEL, "operator": "DoesNotExist"}
    node_affinity = (own or {}).get("nodeAffinity") or {}
    required = node_affinity.get(REQUIRED)
    terms = [{}] if required is None else required.get("nodeSelectorTerms") or []
    narrowed = [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), refusal]} for term in terms]
    return {**(own or {}), "nodeAffinity": {**node_affinity, REQUIRED: {"nodeSelectorTerms": narrowed}}}
