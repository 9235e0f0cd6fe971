"""Longhorn volume -> PersistentVolume -> claim -> the VMs that use it -> evidence of their node.

The way of webhook.core.evidence.share_managers, backwards: for a share-manager pod, which is made after its VM has a
node. One Finding
for each VM (`claim` is NAMESPACE/NAME). Its virt-launcher pod is the evidence. Where no such pod is known on a node
yet, Longhorn's VolumeAttachment tells where the volume is wanted: a csi-attacher ticket is stored before the
share-manager pod is made (longhorn-manager csi/controller_server.go, share_manager_controller.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from webhook.core.api import kubevirt
from webhook.core.api.meta import NamespacedName
from webhook.core.api.names import is_node_name
from webhook.core.api.node_selector import only_node
from webhook.core.api.pod import Pod, uses
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Mode, Policy, requested_mode
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, Kind, NeedObjects, NoObject, ObjectRef, Ref, VirtLaunchersOnNode

_CSI_ATTACHER: Final = "csi-attacher"
_TICKETS_MAX: Final = 4  # nodes of tickets that are asked about: two of a migration, and two that are lost


def resolve(volume: str, view: ClusterView, policy: Policy) -> list[Finding] | NeedObjects:
    """One finding for each VM that uses `volume`, or one that says why there is none; or what must be read first.

    A finding has a `node` where the VM asks for co-scheduling and something tells its node.
    """
    claims = view.volume_claims(volume)
    ref = ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", volume))
    if claims is NoObject.NOT_CACHED:
        return NeedObjects((ref,))
    if claims is NoObject.UNAVAILABLE:
        return [_lost(volume, ref, view)]
    if isinstance(claims, NoObject) or not claims:
        return [Finding(claim="", why=Reason.VOLUME_UNCLAIMED.why(volume=volume), volume_handle=volume)]
    return _Search(volume, claims, view, policy).findings()


class _VM(Struct, frozen=True):
    """A VM that uses the volume, by the pod that will go on running it."""

    claim: str
    pod: Pod

    @property
    def name(self) -> str:
        """The VirtualMachineInstance's name; the pod's where nothing owns it."""
        return kubevirt.vm_name(self.pod)

    @property
    def instance(self) -> NamespacedName | None:
        """Namespace and uid of the VirtualMachineInstance, which its pods are labelled with."""
        owner = kubevirt.owner(self.pod)
        return NamespacedName(self.claim.partition("/")[0], owner.uid) if owner and owner.uid else None


class _Search(Struct, frozen=True):
    """The VMs behind one volume, and where each is: first by what is known, then by what the API server says."""

    volume: str
    claims: Sequence[NamespacedName]
    view: ClusterView
    policy: Policy

    def findings(self) -> list[Finding] | NeedObjects:
        """One for each VM."""
        known = [(claim, self.view.virt_launchers(claim)) for claim in self.claims]
        pods = [(claim, pod) for claim, pods in known if not isinstance(pods, NoObject) for pod in pods]
        found = self._of(pods)
        waits = any(finding.why.reason is Reason.CONSUMER_ON_NO_NODE for finding in found)
        weak = Reason.CONSUMER_LEAVING if waits else None  # one that leaves must not hold what another is coming for
        if any(finding.node and finding.why.reason is not weak for finding in found):
            return found
        return self._by_tickets(found, pods)

    def _of(self, pods: Iterable[tuple[NamespacedName, Pod]]) -> list[Finding]:
        """A finding for each VM that one of these pods runs, by the pod that goes on running it."""
        running: dict[tuple[str, str], list[_VM]] = {}
        for claim, pod in pods:
            vm = _VM(f"{claim.namespace}/{claim.name}", pod)
            if not kubevirt.is_finished(pod):
                running.setdefault((vm.claim, vm.name), []).append(vm)
        return [
            self._finding(max(vms, key=lambda vm: kubevirt.running_order(vm.pod))) for _, vms in sorted(running.items())
        ]

    def _finding(self, vm: _VM) -> Finding:
        pod, names = vm.pod, {"claim": vm.claim, "vm": vm.name, "pod": vm.pod.metadata.name}
        mode = requested_mode(pod, self.policy)
        if not isinstance(mode, Mode):
            return self._told(vm, Reason.CONSUMER_NOT_OPTED_IN.why(**names, because=mode.sentence))
        if pod.spec.node_name:
            reason = Reason.CONSUMER_LEAVING if pod.metadata.deletion_timestamp else Reason.CONSUMER_ON_NODE
            return self._told(vm, reason.why(**names, node=pod.spec.node_name), pod.spec.node_name)
        only = only_node(pod.spec.required_node_affinity)
        if only:
            return self._told(vm, Reason.CONSUMER_PINNED.why(**names, node=only), only)
        return self._told(vm, Reason.CONSUMER_ON_NO_NODE.why(**names))

    def _by_tickets(
        self, found: list[Finding], pods: Iterable[tuple[NamespacedName, Pod]]
    ) -> list[Finding] | NeedObjects:
        """The findings, completed by where Longhorn's tickets say that the volume is wanted.

        A VM that asks for us and is on no node, as far as is known, has one by its ticket: that news is on its way.
        With no such VM only the API server can say whether the ticket is a VM's at all.
        """
        attachment = self.view.volume_attachment(self.volume)
        ref = ObjectRef(Kind.VOLUME_ATTACHMENT, NamespacedName("", self.volume))
        if attachment is NoObject.NOT_CACHED:
            return NeedObjects((ref,))
        if attachment is NoObject.UNAVAILABLE:
            return [*found, _lost(self.volume, ref, self.view)]
        tickets = (
            None if isinstance(attachment, NoObject) or not attachment.spec else attachment.spec.attachment_tickets
        )
        named = {ticket.node_id or "" for ticket in (tickets or {}).values() if ticket.type == _CSI_ATTACHER}
        gone = {pod.spec.node_name for _, pod in pods if _is_leaving(pod)}
        staying = (pod for _, pod in pods if not _is_leaving(pod))
        others = {pod.spec.node_name for pod in staying if not isinstance(requested_mode(pod, self.policy), Mode)}
        nodes = [node for node in sorted(named) if node not in others and is_node_name(node)]
        waiting = [finding for finding in found if finding.why.reason is Reason.CONSUMER_ON_NO_NODE]
        if not waiting:
            return self._by_reading(found, nodes[:_TICKETS_MAX])
        nodes = [node for node in nodes if node not in gone] or nodes
        return [self._ticketed(finding, node) for finding in waiting for node in nodes] or found

    def _ticketed(self, finding: Finding, node: str) -> Finding:
        why = Reason.ATTACHMENT_TICKET.why(**finding.why.names, volume=self.volume, node=node)
        return msgspec.structs.replace(finding, why=why, node=node)

    def _by_reading(self, found: list[Finding], nodes: Sequence[str]) -> list[Finding] | NeedObjects:
        """The VMs' pods that are on these nodes, as the API server has them."""
        places = [(claim, _on_node(claim.namespace, node)) for claim in self.claims for node in nodes]
        read = [(claim, ref, self.view.virt_launchers_on(*ref.key)) for claim, ref in places]
        unread = dict.fromkeys(ref for _, ref, pods in read if pods is NoObject.NOT_CACHED)
        if unread:
            return NeedObjects(tuple(unread))
        answered = [(claim, pods) for claim, _, pods in read if not isinstance(pods, NoObject)]
        there = self._of((claim, pod) for claim, pods in answered for pod in pods if uses(pod, claim.name))
        lost = [_lost(self.volume, ref, self.view) for _, ref, pods in read if pods is NoObject.UNAVAILABLE]
        return [*found, *there, *lost] or [self._unused()]

    def _unused(self) -> Finding:
        claim = f"{self.claims[0].namespace}/{self.claims[0].name}"
        return Finding(claim=claim, why=Reason.NO_CONSUMER.why(claim=claim), volume_handle=self.volume)

    def _told(self, vm: _VM, why: Why, node: str | None = None) -> Finding:
        return Finding(claim=vm.claim, why=why, volume_handle=self.volume, instance=vm.instance, node=node)


def _is_leaving(pod: Pod) -> bool:
    return kubevirt.is_finished(pod) or bool(pod.metadata.deletion_timestamp)


def _on_node(namespace: str, node: str) -> Ref:
    return VirtLaunchersOnNode(namespace, node)


def _lost(volume: str, ref: Ref, view: ClusterView) -> Finding:
    why = Reason.VOLUME_LOOKUP_FAILED.why(volume=volume, kind=ref.kind, problem=view.read_error(ref))
    return Finding(claim="", why=why, volume_handle=volume)
