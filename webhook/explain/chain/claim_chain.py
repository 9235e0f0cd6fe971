"""ClaimChain: the objects between a claim and its share-manager pod, and the finding of core.

Invariant: nothing is decided here. The finding of core names the objects, so the view has all of them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from webhook.core import refs
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.evidence.finding import Finding
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView, NoObject

_LIVE_PHASES: Final = ("Pending", "Running")


class ShareManagerLink(Struct, rename="camel", frozen=True, kw_only=True):
    """The ShareManager of a volume."""

    state: str | None
    owner_id: str | None = field(name="ownerID")


class PodLink(Struct, rename="camel", frozen=True, kw_only=True):
    """An existing pod: of a share-manager, or of a VM."""

    name: str
    phase: str | None
    node: str | None
    terminating: bool

    @property
    def live(self) -> bool:
        """Whether the pod runs, or is pending."""
        return not self.terminating and (self.phase or "Pending") in _LIVE_PHASES


class ClaimChain(Struct, rename="camel", frozen=True, kw_only=True):
    """One claim, the objects behind it, and the finding of core. `node` is None if the finding names no node."""

    claim: str
    phase: str | None
    access_modes: list[str]
    persistent_volume: str | None
    volume_handle: str | None
    share_manager: ShareManagerLink | None
    pod: PodLink | None
    reason: str
    sentence: str
    node: str | None
    firm: bool


def build_claim_chain(finding: Finding, namespace: str, view: ClusterView) -> ClaimChain:
    """Return the objects behind the claim of a finding. A generic ephemeral volume has no claim that could be read."""
    ephemeral = finding.why.reason is Reason.EPHEMERAL_CLAIM
    ref = refs.persistent_volume_claim(NamespacedName(namespace, finding.claim))
    claim = NoObject.NOT_FOUND if ephemeral else view.get(ref)
    existing = None if isinstance(claim, NoObject) else claim
    handle = finding.volume_handle
    return ClaimChain(
        claim=finding.claim,
        phase=existing.status.phase if existing and existing.status else None,
        access_modes=list((existing.spec.access_modes if existing and existing.spec else None) or ()),
        persistent_volume=existing.spec.volume_name if existing and existing.spec else None,
        volume_handle=handle,
        share_manager=share_manager_link(handle, view) if handle else None,
        pod=share_manager_pod_link(handle, view) if handle else None,
        reason=finding.why.reason.code,
        sentence=finding.why.sentence,
        node=finding.node,
        firm=finding.firm,
    )


def share_manager_link(handle: str, view: ClusterView) -> ShareManagerLink | None:
    """Return the state of a volume's ShareManager; None if it does not exist or could not be read."""
    found = view.get(refs.share_manager(handle))
    if isinstance(found, NoObject):
        return None
    status = found.status
    return ShareManagerLink(state=status.state if status else None, owner_id=status.owner_id if status else None)


def share_manager_pod_link(handle: str, view: ClusterView) -> PodLink | None:
    """Return the share-manager pod of a volume; None if it does not exist or could not be read."""
    pod = view.get(refs.share_manager_pod(handle))
    return None if isinstance(pod, NoObject) else pod_link(pod)


def pod_link(pod: Pod) -> PodLink:
    """Return the part of a pod that an explanation shows."""
    return PodLink(
        name=pod.metadata.name or "",
        phase=pod.status.phase if pod.status else None,
        node=pod.spec.node_name,
        terminating=bool(pod.metadata.deletion_timestamp),
    )
