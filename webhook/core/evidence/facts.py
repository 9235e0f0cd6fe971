"""Finding: what one claim of a virt-launcher pod led to, or one VM behind a share-manager pod. And what the objects of
a pod's VM say of its claims and of its starts, and who else uses its volumes.

Nothing is guessed. What is not known here never makes a node required: each function says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from webhook.core import refs
from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import VirtualMachineInstanceRef
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.api.virtual_machine import VirtualMachineInstance, VMClaim
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, Kind, NoObject, Ref, VolumeUsers


class ClaimUse(IntEnum):
    """What a VM uses a claim for. The highest use with a share-manager on a node decides where the VM runs.

    OWN is a disk whose volume nobody else uses. HOTPLUGGED is such a disk that no virt-launcher pod has: KubeVirt
    attaches it by an hp-volume pod after the VM has its node. SHARED is a claim whose volume another VM or pod uses,
    or that has a second PersistentVolume. STATE is the state that KubeVirt stores of the VM (TPM, EFI): a few KB. A
    CDROM pulls nowhere.
    """

    CDROM = 0
    STATE = 1
    SHARED = 2
    HOTPLUGGED = 3
    OWN = 4

    @property
    def is_own_disk(self) -> bool:
        """Whether the VM's state counts the claim, and a short list may be made for its sake."""
        return self >= ClaimUse.HOTPLUGGED


class Finding(Struct, frozen=True, kw_only=True):
    """What one claim of a virt-launcher pod led to, or one VM behind a share-manager pod.

    Attributes:
        claim: the claim's name; NAMESPACE/NAME for a share-manager pod, empty if no claim was found.
        why: the reason, with the names of the objects.
        persistent_volume: that of a bound claim, also if it leads to no share-manager.
        volume_handle: Longhorn's name of the volume.
        vmi: the VirtualMachineInstance whose pod is the evidence. Only for a share-manager pod.
        pod: this pod. Only for a share-manager pod.
        node: the node that the evidence names, None if there is none.
        firm: whether the evidence is strong enough to require the node.
        use: what the VM uses the claim for.
        others: who else uses the volume, each with its kind.
        unsure: why others can use the volume who are not known; empty if all are known. Then no node is required.
        in_pod: whether the virt-launcher pod has the claim. kube-scheduler knows of no other claim.
        of_one_pod: whether only one pod at a time may use the claim.
        being_deleted: whether the claim is being deleted. Another claim of this name can lead to another volume.
    """

    claim: str
    why: Why
    persistent_volume: PersistentVolume | None = None
    volume_handle: str | None = None
    vmi: VirtualMachineInstanceRef | None = None
    pod: Pod | None = None
    node: str | None = None
    firm: bool = False
    use: ClaimUse = ClaimUse.OWN
    others: tuple[str, ...] = ()
    unsure: str = ""
    in_pod: bool = True
    of_one_pod: bool = False
    being_deleted: bool = False

    @property
    def may_have_share_manager(self) -> bool:
        """Whether the claim leads to a Longhorn volume that a share-manager serves when it is attached."""
        return self.volume_handle is not None and not self.why.reason.columns.no_share_manager

    @property
    def why_not_required(self) -> Why:
        """Why the node of the evidence is not required."""
        if self.use is ClaimUse.STATE:
            return Reason.STATE_CLAIM.why(claim=self.claim)
        if self.use is ClaimUse.SHARED:
            more = " and others" if len(self.others) > 1 else ""
            return Reason.SHARED_CLAIM.why(claim=self.claim, other=f"{self.others[0]}{more}")
        if self.use is ClaimUse.HOTPLUGGED and self.firm:
            return Reason.HOTPLUGGED_CLAIM.why(claim=self.claim)
        if self.unsure and self.firm:
            return Reason.EVIDENCE_NOT_CONFIRMED.why(staleness=self.unsure)
        return self.why

    @property
    def volume_nodes_unknown(self) -> bool:
        """Whether the nodes that the claim's volume allows are unknown. Then no node may be required.

        A volume that is bound later can be confined to a zone or a node (StorageClass topology, local volumes). A
        strict-local volume is attached on one node only. A pod that must run elsewhere would never start. This also
        holds for Longhorn's own StorageClass without topology: kube-scheduler rejects nodes by their CSIStorageCapacity
        (volumebinding/binder.go, hasEnoughCapacity). Longhorn 1.10 and 1.11 always publish it, later releases can.
        """
        return self.persistent_volume is None or self.why.reason is Reason.VOLUME_STRICT_LOCAL


class DescribedVM(Struct, frozen=True):
    """A VM as its objects describe it. `name`: of its VirtualMachine; None for an instance without one."""

    vmi: str
    name: str | None
    claims: Sequence[VMClaim]

    @property
    def hotpluggable_claims(self) -> list[str]:
        """The names of the claims that KubeVirt attaches to the VM by a pod of their own.

        Upstream: pkg/virt-controller/services/rendervolumes.go, which leaves such volumes out of the virt-launcher pod.
        """
        return [claim.name for claim in self.claims if claim.hotpluggable]


def with_uses(
    findings: Iterable[Finding], state_claims: Collection[str], vm: DescribedVM, namespace: str, view: ClusterView
) -> list[Finding]:
    """Return the findings with what the VM uses each claim for.

    `state_claims`: the claims that hold KubeVirt's state of the VM.
    """
    cdroms = {claim.name for claim in vm.claims if claim.cdrom} - {each.name for each in vm.claims if not each.cdrom}

    def with_use(finding: Finding) -> Finding:
        if finding.claim in state_claims:
            return replace(finding, use=ClaimUse.STATE)
        if finding.claim in cdroms:
            why = Reason.CDROM_CLAIM.why(claim=finding.claim) if finding.may_have_share_manager else finding.why
            return replace(finding, use=ClaimUse.CDROM, why=why)
        own = finding if finding.in_pod else replace(finding, use=ClaimUse.HOTPLUGGED)
        if not finding.may_have_share_manager:
            return own
        users = view.users_of(finding.volume_handle or "", NamespacedName(namespace, finding.claim))
        others = tuple(_others(users, finding, vm))
        if others:
            return replace(finding, use=ClaimUse.SHARED, others=others)
        return replace(own, unsure=users.unknown) if users.unknown else own

    return list(map(with_use, findings))


def _others(users: VolumeUsers, finding: Finding, vm: DescribedVM) -> Iterator[str]:
    """Return who uses the volume of `finding` beside this VM, its own pods and the claim's PersistentVolume."""
    volume = finding.persistent_volume
    yield from (f"VM {name}" for name in users.vms if name != (vm.name or vm.vmi))
    yield from (f"pod {name}" for name, vmi in sorted(users.pods.items()) if not vmi or vmi != vm.vmi)
    yield from (
        f"{Kind.PERSISTENT_VOLUME} {name}"
        for name in sorted(users.volumes)
        if not volume or name != volume.metadata.name
    )


def start_failures(pod: Pod, namespace: str, view: ClusterView) -> tuple[Why | None, str]:
    """Return that the last starts of the pod's VM failed, None if none did; and why that is not known, empty if it is.

    An instance without a VirtualMachine has no count.
    """
    name, vmi = _vmi_of(pod, namespace, view)
    if vmi is NoObject.UNAVAILABLE:
        return None, _unread(refs.virtual_machine_instance(NamespacedName(namespace, name)), view)
    if not isinstance(vmi, NoObject):
        name = vmi.virtual_machine or ""
    ref = refs.virtual_machine(NamespacedName(namespace, name))
    found = view.get(ref) if name else NoObject.NOT_FOUND
    if found is NoObject.UNAVAILABLE:
        return None, _unread(ref, view)
    if isinstance(found, NoObject) or not found.start_failures:
        return None, ""
    return Reason.START_FAILURES.why(vm=name, count=found.start_failures), ""


def fails_again(failing: Why) -> bool:
    """Whether not only the last start failed (`start_failures`): the webhook then asks for no node."""
    return failing.names["count"] != 1


def _unread(ref: Ref, view: ClusterView) -> str:
    return f"{ref.kind} {ref.name}: {view.read_error(ref)}"


def running_pod(pods: Sequence[Pod], namespace: str, view: ClusterView) -> Pod:
    """Return the one of a VM's unfinished pods in which the VM runs, or will run; there is at least one.

    The VirtualMachineInstance is asked for only if there are several.
    """
    if len(pods) == 1:
        return pods[0]
    _, vmi = _vmi_of(pods[0], namespace, view)
    node = None if isinstance(vmi, NoObject) else vmi.node
    return max(pods, key=lambda pod: kubevirt.running_order(pod, node))


def why_pod_not_known(pod: Pod, namespace: str, view: ClusterView) -> Why | None:
    """Return that `running_pod` could only guess, of several pods on nodes: the instance could not be read."""
    name, vmi = _vmi_of(pod, namespace, view)
    if vmi is not NoObject.UNAVAILABLE:
        return None
    problem = view.read_error(refs.virtual_machine_instance(NamespacedName(namespace, name)))
    return Reason.VM_POD_NOT_KNOWN.why(vm=name, problem=problem)


def vm_as_described(pod: Pod, namespace: str, view: ClusterView) -> DescribedVM:
    """Return the VM as its VirtualMachineInstance has it; without one as the VirtualMachine of the same name has it.

    The VirtualMachine is asked for only once the instance was read: most VMs have one.
    """
    name, vmi = _vmi_of(pod, namespace, view)
    if not isinstance(vmi, NoObject):
        return DescribedVM(name, vmi.virtual_machine, vmi.claims)
    key = NamespacedName(namespace, name)
    if not name or refs.virtual_machine_instance(key) in view.missing:
        return DescribedVM(name, name or None, ())
    vm = view.get(refs.virtual_machine(key))
    return DescribedVM(name, name, () if isinstance(vm, NoObject) else vm.claims)


def _vmi_of(pod: Pod, namespace: str, view: ClusterView) -> tuple[str, VirtualMachineInstance | NoObject]:
    """Return the VirtualMachineInstance that owns the pod, and its name, which is empty for a pod without an owner."""
    owner = kubevirt.owner(pod)
    name = (owner and owner.name) or ""
    key = NamespacedName(namespace, name)
    return name, view.get(refs.virtual_machine_instance(key)) if name else NoObject.NOT_FOUND
