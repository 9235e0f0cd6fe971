"""Finding: what one claim of a virt-launcher pod led to, or one VM behind a share-manager pod."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from webhook.core.api.kubevirt import VirtualMachineInstanceRef
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why


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
