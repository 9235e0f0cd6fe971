"""ClaimChain: the objects between a claim and its share-manager, and what core found at their end.

Looked up to be shown, by the names that core's finding gives: core has had them all read. Which of them counts was
decided there.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

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
    """A pod that is there: a share-manager's, or a VM's."""

    name: str
    phase: str | None
    node: str | None
    terminating: bool

    @property
    def live(self) -> bool:
        """Whether it runs, or will."""
        return not self.terminating and (self.phase or "Pending") in _LIVE_PHASES


class ClaimChain(Struct, rename="camel", frozen=True, kw_only=True):
    """One claim as far as it leads, and what core found at the end. `node` is the evidence, if there is any."""

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


def of(finding: Finding, namespace: str, view: ClusterView) -> ClaimChain:
    """The objects between a claim and its finding. A generic ephemeral volume's finding has no claim to look up."""
    ephemeral = finding.why.reason is Reason.EPHEMERAL_CLAIM
    pvc = NoObject.NOT_FOUND if ephemeral else view.persistent_volume_claim(NamespacedName(namespace, finding.claim))
    there = None if isinstance(pvc, NoObject) else pvc
    handle = finding.volume_handle
    return ClaimChain(
        claim=finding.claim,
        phase=there.status.phase if there and there.status else None,
        access_modes=list((there.spec.access_modes if there and there.spec else None) or ()),
        persistent_volume=there.spec.volume_name if there and there.spec else None,
        volume_handle=handle,
        share_manager=share_manager(handle, view) if handle else None,
        pod=share_manager_pod(handle, view) if handle else None,
        reason=finding.why.reason.code,
        sentence=finding.why.sentence,
        node=finding.node,
        firm=finding.firm,
    )


def share_manager(handle: str, view: ClusterView) -> ShareManagerLink | None:
    """The ShareManager of a volume, where there is one."""
    manager = view.share_manager(handle)
    if isinstance(manager, NoObject):
        return None
    status = manager.status
    return ShareManagerLink(state=status.state if status else None, owner_id=status.owner_id if status else None)


def share_manager_pod(handle: str, view: ClusterView) -> PodLink | None:
    """The share-manager pod of a volume, where there is one."""
    pod = view.share_manager_pod(handle)
    return None if isinstance(pod, NoObject) else pod_link(pod)


def pod_link(pod: Pod) -> PodLink:
    """What is shown of a pod that is there."""
    return PodLink(
        name=pod.metadata.name or "",
        phase=pod.status.phase if pod.status else None,
        node=pod.spec.node_name,
        terminating=bool(pod.metadata.deletion_timestamp),
    )
