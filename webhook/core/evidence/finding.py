"""Finding: what one claim of a virt-launcher pod led to, or one VM behind a share-manager pod."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.kubevirt import VirtualMachineInstanceRef
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why


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
        vm_state_claim: whether the claim holds only the state that KubeVirt stores of the VM (TPM, EFI): a few KB.
    """

    claim: str
    why: Why
    persistent_volume: PersistentVolume | None = None
    volume_handle: str | None = None
    vmi: VirtualMachineInstanceRef | None = None
    pod: Pod | None = None
    node: str | None = None
    firm: bool = False
    vm_state_claim: bool = False

    @property
    def volume_nodes_unknown(self) -> bool:
        """Whether the nodes that the claim's volume allows are unknown. Then no node may be required.

        A volume that is bound later can be confined to a zone or a node (StorageClass topology, local volumes). A
        strict-local volume is attached on one node only. A pod that must run elsewhere would never start. This also
        holds for Longhorn's own StorageClass without topology: kube-scheduler rejects nodes by their CSIStorageCapacity
        (volumebinding/binder.go, hasEnoughCapacity). Longhorn 1.10 and 1.11 always publish it, later releases can.
        """
        return self.persistent_volume is None or self.why.reason is Reason.VOLUME_STRICT_LOCAL
