"""Templates: the part of a VM's current pod that decides about the next start of the VM, as two texts of JSON.

Only pods that ask for no co-scheduling have one: the page shows what they would gain. The first text has what each VM
has for itself: labels and volumes. The second one has what VMs of one kind have in common, and is stored once. Texts
cost a third of the objects, and the garbage collector does not visit them.
"""

from __future__ import annotations

from sys import intern
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from webhook.core.api.container import Container, Quantities, ResourceRequirements
from webhook.core.api.pod import Pod, PodSchedulingGate, PodSpec, Volume
from webhook.core.opt_in import opts_in
from webhook.kube.records import virt_launchers
from webhook.kube.records.virt_launchers import VirtLauncher, WireAffinity

_NOTHING = (b"", b"null")


class _Own(Struct, gc=False):
    """What one VM has for itself."""

    labels: dict[str, str] | None
    volumes: list[Volume]


class _Common(Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """The part of v1.PodSpec that plugins read, and that does not name the VM."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] | None = None
    affinity: WireAffinity | None = None
    tolerations: Raw | None = None
    topology_spread_constraints: Raw | None = None
    scheduling_gates: list[PodSchedulingGate] | None = None
    resource_claims: Raw | None = None


def template_of(wire: Any) -> tuple[str, str] | None:
    """Return the template of a virt-launcher pod (a webhook.kube.records.pods.WirePod).

    None for a pod that asks for co-scheduling, because `status` shows its VM. None also for a pod without a claim,
    because its VM has no share-manager.
    """
    meta, spec = wire.metadata, wire.spec
    volumes = [each for each in spec.volumes or () if each.persistent_volume_claim or each.ephemeral]
    if not volumes or opts_in(meta.annotations.co_schedule if meta.annotations else None):
        return None
    common = _Common(
        containers=_without_arguments(spec.containers),
        init_containers=_without_arguments(spec.init_containers),
        overhead=spec.overhead,
        resources=spec.resources,
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=_stated(spec.tolerations),
        topology_spread_constraints=_stated(spec.topology_spread_constraints),
        scheduling_gates=spec.scheduling_gates,
        resource_claims=_stated(spec.resource_claims),
    )
    return _text(_Own(meta.labels, volumes)), intern(_text(common))


def next_pod(key: str, record: VirtLauncher) -> Pod | None:
    """Return the pod of this cache key (NAMESPACE/NAME) and record, with all that decides about its VM's next start.

    None if the record has no template, or if its template can not be read.
    """
    if record.template is None:
        return None
    try:
        own = msgspec.json.decode(record.template[0], type=_Own)
        spec = msgspec.json.decode(record.template[1], type=PodSpec)
    except msgspec.ValidationError:
        return None
    pod = virt_launchers.to_object(key, record)
    spec = replace(spec, node_name=pod.spec.node_name, scheduler_name=pod.spec.scheduler_name, volumes=own.volumes)
    return replace(pod, metadata=replace(pod.metadata, labels=own.labels), spec=spec)


def _without_arguments(containers: list[Container] | None) -> list[Container] | None:
    """Return the containers without their arguments, which name the VM."""
    return [replace(each, args=None) for each in containers] if containers else None


def _stated(value: Raw) -> Raw | None:
    return None if bytes(value) in _NOTHING else value


def _text(part: Struct) -> str:
    return msgspec.json.encode(part).decode()
