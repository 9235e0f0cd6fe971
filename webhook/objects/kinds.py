"""The table of kinds: every kind of object that the program reads, where it is at an API server, and its type.

Each type has all the fields that the program reads of the kind. Core reads some kinds by narrower types, and the caches
of `serve` by records (webhook.kube.kinds).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from webhook.core.api import longhorn, meta, node, storage
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER, VMI_KIND
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION
from webhook.core.api.migration import KubeVirt, Migration
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.observe.events import ReuniteEvent
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.view import Kind
from webhook.objects import kubevirt
from webhook.objects.installed import ServePod, Setting, WebhookConfiguration

_T = TypeVar("_T")


class APIResource(Struct, Generic[_T], frozen=True, eq=False):
    """One kind, as metav1.APIResource names it.

    Attributes:
        kind: as in an object.
        plural: as in a path.
        type: of its objects.
        api_version: group and version, as in an object.
        namespaced: whether its objects are in namespaces.
        selector: the label selector of the objects that are read; empty for all.
        fields: their field selector.
        of_longhorn: whether only those of Longhorn's namespace are read.
        for_core: whether a decision can't do without the kind. Then files have it in this version alone.
        part: what the selected part of the kind is called; empty for the whole kind.
    """

    kind: str
    plural: str
    type: type[_T]
    api_version: str = "v1"
    namespaced: bool = True
    selector: str = ""
    fields: str = ""
    of_longhorn: bool = False
    for_core: bool = True
    part: str = ""

    @property
    def group(self) -> str:
        """The API group; empty for that of Kubernetes' core."""
        return self.api_version.rpartition("/")[0]

    @property
    def product(self) -> str:
        """What installs the kind."""
        return {"longhorn.io": "Longhorn", "kubevirt.io": "KubeVirt"}.get(self.group, "Kubernetes")

    @property
    def title(self) -> str:
        """The resource; of a part of a kind what the part is called."""
        return self.part or self.resource

    @property
    def resource(self) -> str:
        """Resource and group, as in an RBAC rule."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def prefix(self) -> str:
        """The path of the group and version."""
        return f"{'/apis' if self.group else '/api'}/{self.api_version}"

    def path(self, within: str, name: str) -> str:
        """Return the URL path of the object `name`. `within` is the path's part for the namespace, or empty."""
        return "/".join(filter(None, (self.prefix, within, self.plural, name)))


def _pods(part: str, type_: type[_T], labels: Mapping[str, str], **more: Any) -> APIResource[_T]:
    """A part of the pods: those with these labels."""
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    return APIResource("Pod", "pods", type_, selector=selector, part=part, **more)


def _longhorn(kind: str, plural: str, type_: type[_T], **more: Any) -> APIResource[_T]:
    return APIResource(kind, plural, type_, LONGHORN_API_VERSION, of_longhorn=True, **more)


def _kubevirt(kind: str, plural: str, type_: type[_T]) -> APIResource[_T]:
    return APIResource(kind, plural, type_, KUBEVIRT_API_VERSION, for_core=False)


NODE: Final = APIResource("Node", "nodes", node.Node, namespaced=False)
POD: Final = APIResource("Pod", "pods", Pod)
_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"  # as kube-scheduler: other pods use no node
UNFINISHED_POD: Final = APIResource("Pod", "pods", Pod, fields=_UNFINISHED)
OTHER_POD: Final = APIResource(
    "Pod", "pods", Pod, selector=f"{LABEL_APP}!={VIRT_LAUNCHER}", fields=_UNFINISHED, part="pods of no VM"
)
VIRT_LAUNCHER_POD: Final = _pods("virt-launcher pods", Pod, {LABEL_APP: VIRT_LAUNCHER}, fields=_UNFINISHED)
SHARE_MANAGER_POD: Final = _pods(
    "share-manager pods", Pod, {LABEL_LONGHORN_COMPONENT: longhorn.SHARE_MANAGER}, of_longhorn=True
)
WEBHOOK_POD: Final = _pods("pods of the webhook", ServePod, REPLICA_LABELS, for_core=False)
PERSISTENT_VOLUME_CLAIM: Final = APIResource(
    "PersistentVolumeClaim", "persistentvolumeclaims", storage.PersistentVolumeClaim
)
PERSISTENT_VOLUME: Final = APIResource(
    "PersistentVolume", "persistentvolumes", storage.PersistentVolume, namespaced=False
)
CSI_NODE: Final = APIResource("CSINode", "csinodes", node.CSINode, "storage.k8s.io/v1", namespaced=False)
NAMESPACE: Final = APIResource("Namespace", "namespaces", meta.Namespace, namespaced=False)
# A rule with resourceNames allows list and watch with this selector only (apiserver requestinfo.go).
_AUTOSCALER: Final = f"metadata.name={meta.CLUSTER_AUTOSCALER_STATUS}"
CONFIG_MAP: Final = APIResource("ConfigMap", "configmaps", meta.ConfigMap, fields=_AUTOSCALER)
WEBHOOK_CONFIGURATION: Final = APIResource(
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    WebhookConfiguration,
    "admissionregistration.k8s.io/v1",
    namespaced=False,
    for_core=False,
)
VIRTUAL_MACHINE: Final = _kubevirt("VirtualMachine", "virtualmachines", kubevirt.VirtualMachine)
VIRTUAL_MACHINE_INSTANCE: Final = _kubevirt(VMI_KIND, "virtualmachineinstances", kubevirt.VirtualMachineInstance)
MIGRATION: Final = _kubevirt("VirtualMachineInstanceMigration", "virtualmachineinstancemigrations", Migration)
KUBEVIRT: Final = _kubevirt("KubeVirt", "kubevirts", KubeVirt)
SHARE_MANAGER: Final = _longhorn("ShareManager", "sharemanagers", longhorn.ShareManager)
LONGHORN_NODE: Final = _longhorn("Node", "nodes", longhorn.LonghornNode)
VOLUME_ATTACHMENT: Final = _longhorn("VolumeAttachment", "volumeattachments", longhorn.VolumeAttachment)
SETTING: Final = _longhorn("Setting", "settings", Setting, for_core=False)
EVENT: Final = APIResource("Event", "events", ReuniteEvent, fields=f"involvedObject.kind={VMI_KIND}", for_core=False)

KINDS: Final = tuple(
    each
    for each in list(globals().values())
    if isinstance(each, APIResource) and not each.selector and each.fields != _UNFINISHED
)
"""Every kind, in the order in which a bundle lists them: that of this module, without the parts of a kind."""

OF_CORE: Final[Mapping[Kind, APIResource[Any]]] = {
    Kind.PERSISTENT_VOLUME_CLAIM: PERSISTENT_VOLUME_CLAIM,
    Kind.PERSISTENT_VOLUME: PERSISTENT_VOLUME,
    Kind.SHARE_MANAGER: SHARE_MANAGER,
    Kind.SHARE_MANAGER_POD: SHARE_MANAGER_POD,
    Kind.NODE: NODE,
    Kind.LONGHORN_NODE: LONGHORN_NODE,
    Kind.VOLUME_ATTACHMENT: VOLUME_ATTACHMENT,
    Kind.CSI_NODE: CSI_NODE,
    Kind.NAMESPACE: NAMESPACE,
    Kind.CLUSTER_AUTOSCALER_STATUS: CONFIG_MAP,
    Kind.VIRT_LAUNCHER_POD: VIRT_LAUNCHER_POD,
    Kind.VIRT_LAUNCHERS_ON_NODE: VIRT_LAUNCHER_POD,
    Kind.VIRTUAL_MACHINE: VIRTUAL_MACHINE,
    Kind.VIRTUAL_MACHINE_INSTANCE: VIRTUAL_MACHINE_INSTANCE,
}
"""What core asks for is of which kind."""

_BY_GROUP: Final = {(each.group, each.kind): each for each in KINDS}


def find_kind(api_version: str, kind: str) -> APIResource[Any] | None:
    """Return the kind of an object; None if nothing reads it.

    Of the kinds that core can't do without one version is read, of the others any.
    """
    found = _BY_GROUP.get((api_version.rpartition("/")[0], kind))
    return found if found and (api_version == found.api_version or not found.for_core) else None
