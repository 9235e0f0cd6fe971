"""Longhorn volume -> PersistentVolume -> claim -> the VMs that use it -> evidence of their node (rules 5 and 6).

The way of webhook.core.evidence.share_managers in the other direction, for a share-manager pod: Longhorn creates it
after its VM has a node. One Finding for each VM (`claim` is NAMESPACE/NAME), with the VM's virt-launcher pod as the
evidence. If no such pod is known to be on a node, Longhorn's VolumeAttachment names the node that wants the volume. Its
csi-attacher ticket is stored before the share-manager pod is created (longhorn-manager csi/controller_server.go,
share_manager_controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

import msgspec
from msgspec import Struct

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.affinity import is_node_name, only_node
from webhook.core.api.kubevirt import VirtualMachineInstanceRef
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod, uses
from webhook.core.evidence import facts
from webhook.core.evidence.facts import ClaimUse, Finding
from webhook.core.evidence.share_managers import find_share_managers
from webhook.core.opt_in import OptIn, Policy, opt_in_of
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, NoObject, Ref

_CSI_ATTACHER: Final = "csi-attacher"
_TICKETS_MAX: Final = 4  # nodes of tickets whose pods are read: two of a live migration, and two lost nodes


def find_vms(volume: str, view: ClusterView, policy: Policy) -> list[Finding]:
    """Return one finding for each VM that uses `volume`, or one with the reason why there is none.

    A finding has a `node` if the VM asks for co-scheduling and something shows its node.
    """
    claims = view.volume_claims(volume)
    if claims is NoObject.UNAVAILABLE:
        return [_lookup_failed(volume, refs.persistent_volume(volume), view)]
    if isinstance(claims, NoObject) or not claims:
        return [Finding(claim="", why=Reason.VOLUME_UNCLAIMED.why(volume=volume), volume_handle=volume)]
    return _Search(volume, claims, view, policy).findings()


def find_share_managers_beside(findings: Sequence[Finding], view: ClusterView) -> list[Finding]:
    """Return a finding for each other disk of these VMs' own whose share-manager has a live pod on a node.

    VMs without a node are left out.
    """
    beside: list[Finding] = []
    for finding in findings:
        if finding.node is None or finding.pod is None:
            continue
        namespace = finding.claim.partition("/")[0]
        found = find_share_managers(finding.pod, namespace, view)
        on_nodes = (each for each in found if each.why.reason is Reason.SHARE_MANAGER_POD and each.use is ClaimUse.OWN)
        beside += (
            _beside(finding, each, namespace) for each in on_nodes if each.volume_handle != finding.volume_handle
        )
    return beside


def _beside(finding: Finding, other: Finding, namespace: str) -> Finding:
    names = {**finding.why.names, "other": other.claim, "node": other.node}
    return Finding(
        claim=f"{namespace}/{other.claim}",
        why=Reason.SHARE_MANAGER_OF_OTHER_CLAIM.why(**names),
        volume_handle=other.volume_handle,
        vmi=finding.vmi,
        node=other.node,
    )


class _Search(Struct, frozen=True):
    """The VMs behind one volume and their nodes: first by what the view holds, then by what the API server answers."""

    volume: str
    claims: Sequence[NamespacedName]
    view: ClusterView
    policy: Policy

    def findings(self) -> list[Finding]:
        """Return one finding for each VM."""
        known = [(claim, self.view.virt_launchers(claim)) for claim in self.claims]
        pods = [(claim, pod) for claim, pods in known if not isinstance(pods, NoObject) for pod in pods]
        found = self._vms_of(pods)
        if self.view.missing:  # a Namespace: whether these VMs are opted in
            return found
        waits = any(finding.why.reason is Reason.CONSUMER_ON_NO_NODE for finding in found)
        # A terminating VM must not keep the share-manager on its node if another VM waits for a node.
        weak = Reason.CONSUMER_TERMINATING if waits else None
        if any(finding.node and finding.why.reason is not weak for finding in found):
            return found
        return self._by_tickets(found, pods)

    def _opt_in(self, pod: Pod, claim: NamespacedName) -> OptIn | Why:
        return opt_in_of(pod, claim.namespace, self.view, self.policy)

    def _vms_of(self, pods: Iterable[tuple[NamespacedName, Pod]]) -> list[Finding]:
        """Return a finding for each VM that runs in one of these pods, by the pod in which it runs or will run."""
        of_vm: dict[tuple[NamespacedName, str], list[Pod]] = {}
        for claim, pod in pods:
            if not kubevirt.is_finished(pod):
                of_vm.setdefault((claim, kubevirt.vm_name(pod)), []).append(pod)
        return [
            self._finding(claim, facts.running_pod(unfinished, claim.namespace, self.view))
            for (claim, _), unfinished in sorted(of_vm.items(), key=itemgetter(0))
        ]

    def _finding(self, key: NamespacedName, pod: Pod) -> Finding:
        claim, opt_in = f"{key.namespace}/{key.name}", self._opt_in(pod, key)
        names = {"claim": claim, "vm": kubevirt.vm_name(pod), "pod": pod.metadata.name}
        node = pod.spec.node_name or only_node(pod.spec.required_node_affinity)
        if isinstance(opt_in, Why):
            why, node = Reason.CONSUMER_NOT_OPTED_IN.why(**names, because=opt_in.sentence), None
        elif pod.spec.node_name:
            reason = Reason.CONSUMER_TERMINATING if pod.metadata.deletion_timestamp else Reason.CONSUMER_ON_NODE
            why = reason.why(**names, node=node)
        else:
            why = Reason.CONSUMER_PINNED.why(**names, node=node) if node else Reason.CONSUMER_ON_NO_NODE.why(**names)
        owner = kubevirt.owner(pod)
        vmi = VirtualMachineInstanceRef(key.namespace, owner.uid) if owner and owner.uid else None
        return Finding(claim=claim, why=why, volume_handle=self.volume, vmi=vmi, pod=pod, node=node or None)

    def _by_tickets(self, found: list[Finding], pods: Iterable[tuple[NamespacedName, Pod]]) -> list[Finding]:
        """Return the findings, completed by the nodes of Longhorn's csi-attacher tickets.

        A VM that asks for co-scheduling and is on no known node gets the ticket's node: the watch has not shown the
        binding yet. If no VM waits, only the API server knows whether the ticket belongs to a VM.
        """
        ref = refs.volume_attachment(self.volume)
        attachment = self.view.get(ref)
        if attachment is NoObject.UNAVAILABLE:
            return [*found, _lookup_failed(self.volume, ref, self.view)]
        tickets = (
            None if isinstance(attachment, NoObject) or not attachment.spec else attachment.spec.attachment_tickets
        )
        named = {ticket.node_id or "" for ticket in (tickets or {}).values() if ticket.type == _CSI_ATTACHER}
        gone = {pod.spec.node_name for _, pod in pods if _is_leaving(pod)}
        staying = ((claim, pod) for claim, pod in pods if not _is_leaving(pod))
        others = {pod.spec.node_name for claim, pod in staying if not isinstance(self._opt_in(pod, claim), OptIn)}
        nodes = [node for node in sorted(named) if node not in others and is_node_name(node)]
        waiting = [finding for finding in found if finding.why.reason is Reason.CONSUMER_ON_NO_NODE]
        if not waiting:
            return self._by_reading(found, nodes[:_TICKETS_MAX])
        nodes = [node for node in nodes if node not in gone] or nodes
        return [self._ticketed(finding, node) for finding in waiting for node in nodes] or found

    def _ticketed(self, finding: Finding, node: str) -> Finding:
        why = Reason.ATTACHMENT_TICKET.why(**finding.why.names, volume=self.volume, node=node)
        return msgspec.structs.replace(finding, why=why, node=node)

    def _by_reading(self, found: list[Finding], nodes: Sequence[str]) -> list[Finding]:
        """Return the findings of the VMs whose pods are on these nodes, as the API server has them."""
        on_nodes = [(claim, refs.virt_launchers_on(claim.namespace, node)) for claim in self.claims for node in nodes]
        read = [(claim, ref, self.view.get(ref)) for claim, ref in on_nodes]
        answered = [(claim, pods) for claim, _, pods in read if not isinstance(pods, NoObject)]
        # A hotpluggable claim is in no virt-launcher pod (ClaimUse.HOTPLUGGED).
        hotplugged = {claim: self.view.users_of(self.volume, claim).vms for claim in self.claims}
        using = [
            (claim, pod)
            for claim, pods in answered
            for pod in pods
            if uses(pod, claim.name) or kubevirt.vm_name(pod) in hotplugged[claim]
        ]
        existing = self._vms_of(using)
        lost = [_lookup_failed(self.volume, ref, self.view) for _, ref, pods in read if pods is NoObject.UNAVAILABLE]
        return [*found, *existing, *lost] or [self._unused()]

    def _unused(self) -> Finding:
        claim = f"{self.claims[0].namespace}/{self.claims[0].name}"
        return Finding(claim=claim, why=Reason.NO_CONSUMER.why(claim=claim), volume_handle=self.volume)


def _is_leaving(pod: Pod) -> bool:
    return kubevirt.is_finished(pod) or bool(pod.metadata.deletion_timestamp)


def _lookup_failed(volume: str, ref: Ref, view: ClusterView) -> Finding:
    why = Reason.VOLUME_LOOKUP_FAILED.why(volume=volume, kind=ref.kind, problem=view.read_error(ref))
    return Finding(claim="", why=why, volume_handle=volume)
