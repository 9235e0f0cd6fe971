"""Finding: what one claim of a pod, or one VM of a volume, led to."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why


class Finding(Struct, frozen=True, kw_only=True):
    """What one volume of the pod led to.

    `volume_handle` is Longhorn's volume name. `node` is set where there is evidence of a node; `firm` says that it may
    carry a hard pin. `persistent_volume` is set for every bound claim, whatever it led to. `instance` is the VM whose
    pod is the evidence, where one's is, by namespace and uid. `state` says that the claim holds what KubeVirt keeps of
    the VM itself (TPM, EFI), a few KB, and no disk.
    """

    claim: str
    why: Why
    persistent_volume: PersistentVolume | None = None
    volume_handle: str | None = None
    instance: NamespacedName | None = None
    node: str | None = None
    firm: bool = False
    state: bool = False

    @property
    def open(self) -> bool:
        """Whether it can't be told which nodes the claim's volume allows: that forbids a hard pin.

        A volume bound later may be confined to a zone or a node (StorageClass topology, local volumes), and one that is
        strict-local is attached on one node only. A pod pinned elsewhere would never start. Longhorn's own StorageClass
        is no way out, without topology either: kube-scheduler refuses nodes by what their CSIStorageCapacity says
        (volumebinding/binder.go, hasEnoughCapacity), which Longhorn 1.10 and 1.11 always and later ones may publish.
        """
        return self.persistent_volume is None or self.why.reason is Reason.VOLUME_STRICT_LOCAL
