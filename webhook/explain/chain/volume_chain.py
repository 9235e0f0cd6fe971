"""VolumeChain: what stands behind a Longhorn volume, from its share-manager to the VMs that use it.

The ClaimChain of a share-manager pod, the other way round. Looked up to be shown; which VM counts was decided in
webhook.core.evidence.consumers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from webhook.core.api import kubevirt
from webhook.core.api.longhorn import SHARE_MANAGER_POD_PREFIX
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Mode, Policy, requested_mode
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef
from webhook.explain.chain import claim_chain
from webhook.explain.chain.claim_chain import PodLink, ShareManagerLink


class VMLink(Struct, rename="camel", frozen=True, kw_only=True):
    """A VM that uses a claim, by one of its pods. `mode` is what it asks for, None where it does not count."""

    vm: str
    pod: PodLink
    annotation: str | None
    mode: str | None


class ClaimLink(Struct, rename="camel", frozen=True, kw_only=True):
    """A claim of the volume; `vms` is None where they are not known."""

    claim: str
    persistent_volume: str | None
    phase: str | None
    access_modes: list[str]
    vms: Sequence[VMLink] | None


class Ticket(Struct, rename="camel", frozen=True, kw_only=True):
    """Who wants the volume attached, and on which node (volumeattachments.longhorn.io)."""

    id: str
    type: str | None
    node: str | None


class Consumer(Struct, rename="camel", frozen=True, kw_only=True):
    """What core found: for each VM, or for the volume. `node` is the evidence, if there is any."""

    claim: str
    reason: str
    sentence: str
    node: str | None


class VolumeChain(Struct, rename="camel", frozen=True, kw_only=True):
    """One volume as far as it leads; `pod` is the share-manager pod that there is now."""

    volume: str
    share_manager: ShareManagerLink | None
    pod: PodLink | None
    claims: Sequence[ClaimLink]
    tickets: Sequence[Ticket]
    consumers: Sequence[Consumer]


def of(volume: str, findings: Sequence[Finding], view: ClusterView, policy: Policy) -> VolumeChain | NeedObjects:
    """The objects between a volume and its findings, or what must be read to show them."""
    keys = view.volume_claims(volume)
    claims = () if isinstance(keys, NoObject) else tuple(keys)
    asked = {
        ObjectRef(Kind.SHARE_MANAGER, NamespacedName("", volume)): view.share_manager(volume),
        ObjectRef(
            Kind.SHARE_MANAGER_POD, NamespacedName("", SHARE_MANAGER_POD_PREFIX + volume)
        ): view.share_manager_pod(volume),
        ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", volume)): view.volume_attachment(volume),
        **{ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, key): view.persistent_volume_claim(key) for key in claims},
    }
    unread = tuple(ref for ref, answer in asked.items() if answer is NoObject.NOT_CACHED)
    if unread:
        return NeedObjects(unread)
    return VolumeChain(
        volume=volume,
        share_manager=claim_chain.share_manager(volume, view),
        pod=claim_chain.share_manager_pod(volume, view),
        claims=[_claim(key, view, policy) for key in claims],
        tickets=list(_tickets(volume, view)),
        consumers=[
            Consumer(claim=found.claim, reason=found.why.reason.code, sentence=found.why.sentence, node=found.node)
            for found in findings
        ],
    )


def _claim(key: NamespacedName, view: ClusterView, policy: Policy) -> ClaimLink:
    pvc, pods = view.persistent_volume_claim(key), view.virt_launchers(key)
    there = None if isinstance(pvc, NoObject) else pvc
    return ClaimLink(
        claim=f"{key.namespace}/{key.name}",
        persistent_volume=there.spec.volume_name if there and there.spec else None,
        phase=there.status.phase if there and there.status else None,
        access_modes=list((there.spec.access_modes if there and there.spec else None) or ()),
        vms=None if isinstance(pods, NoObject) else [_vm(pod, policy) for pod in pods if not kubevirt.is_finished(pod)],
    )


def _vm(pod: Pod, policy: Policy) -> VMLink:
    mode = requested_mode(pod, policy)
    return VMLink(
        vm=kubevirt.vm_name(pod),
        pod=claim_chain.pod_link(pod),
        annotation=pod.metadata.annotation(ANNOTATION_CO_SCHEDULE),
        mode=mode.value if isinstance(mode, Mode) else None,
    )


def _tickets(volume: str, view: ClusterView) -> Iterator[Ticket]:
    attachment = view.volume_attachment(volume)
    spec = None if isinstance(attachment, NoObject) else attachment.spec
    for name, ticket in sorted(((spec and spec.attachment_tickets) or {}).items()):
        yield Ticket(id=name, type=ticket.type, node=ticket.node_id)
