"""VolumeChain: the objects behind a Longhorn volume, from its share-manager to the VMs that use it.

Invariant: nothing is decided here. webhook.core.evidence.consumers has decided which VMs count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import OptIn, Policy, opt_in_of
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import ClusterView, NoObject
from webhook.explain.chain import claim_chain
from webhook.explain.chain.claim_chain import PodLink, ShareManagerLink


class VMLink(Struct, rename="camel", frozen=True, kw_only=True):
    """A VM that uses a claim, with one of its pods. `mode` is the mode that it asks for; None if it does not count."""

    vm: str
    pod: PodLink
    annotation: str | None
    mode: str | None


class ClaimLink(Struct, rename="camel", frozen=True, kw_only=True):
    """A claim of the volume. `vms` is None if the VMs that use it could not be read."""

    claim: str
    persistent_volume: str | None
    phase: str | None
    access_modes: list[str]
    vms: Sequence[VMLink] | None


class Ticket(Struct, rename="camel", frozen=True, kw_only=True):
    """A request to attach the volume to a node (volumeattachments.longhorn.io, spec.attachmentTickets)."""

    id: str
    type: str | None
    node: str | None


class Consumer(Struct, rename="camel", frozen=True, kw_only=True):
    """A finding of core, for a VM or for the volume. `node` is None if the finding names no node."""

    claim: str
    reason: str
    sentence: str
    node: str | None


class VolumeChain(Struct, rename="camel", frozen=True, kw_only=True):
    """One volume and the objects behind it. `pod` is its current share-manager pod."""

    volume: str
    share_manager: ShareManagerLink | None
    pod: PodLink | None
    claims: Sequence[ClaimLink]
    tickets: Sequence[Ticket]
    consumers: Sequence[Consumer]


def build_volume_chain(volume: str, findings: Sequence[Finding], view: ClusterView, policy: Policy) -> VolumeChain:
    """Return the objects behind a volume."""
    keys = view.volume_claims(volume)
    claims = () if isinstance(keys, NoObject) else tuple(keys)
    return VolumeChain(
        volume=volume,
        share_manager=claim_chain.share_manager_link(volume, view),
        pod=claim_chain.share_manager_pod_link(volume, view),
        claims=[_claim(key, view, policy) for key in claims],
        tickets=list(_tickets(volume, view)),
        consumers=[
            Consumer(claim=found.claim, reason=found.why.reason.code, sentence=found.why.sentence, node=found.node)
            for found in findings
        ],
    )


def _claim(key: NamespacedName, view: ClusterView, policy: Policy) -> ClaimLink:
    claim, pods = view.get(refs.persistent_volume_claim(key)), view.virt_launchers(key)
    existing = None if isinstance(claim, NoObject) else claim
    return ClaimLink(
        claim=f"{key.namespace}/{key.name}",
        persistent_volume=existing.spec.volume_name if existing and existing.spec else None,
        phase=existing.status.phase if existing and existing.status else None,
        access_modes=list((existing.spec.access_modes if existing and existing.spec else None) or ()),
        vms=None
        if isinstance(pods, NoObject)
        else [_vm(pod, key.namespace, view, policy) for pod in pods if not kubevirt.is_finished(pod)],
    )


def _vm(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> VMLink:
    opt_in = opt_in_of(pod, namespace, view, policy)
    return VMLink(
        vm=kubevirt.vm_name(pod),
        pod=claim_chain.pod_link(pod),
        annotation=pod.metadata.annotation(ANNOTATION_CO_SCHEDULE),
        mode=opt_in.mode.value if isinstance(opt_in, OptIn) else None,
    )


def _tickets(volume: str, view: ClusterView) -> Iterator[Ticket]:
    attachment = view.get(refs.volume_attachment(volume))
    spec = None if isinstance(attachment, NoObject) else attachment.spec
    for name, ticket in sorted(((spec and spec.attachment_tickets) or {}).items()):
        yield Ticket(id=name, type=ticket.type, node=ticket.node_id)
