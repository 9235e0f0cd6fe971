"""ClusterView: what core asks of a cluster, and the two reasons why a view has no object.

A view answers from memory and never waits. An object that was not read yet is UNAVAILABLE to core, and the view notes
it in `missing`. If anything is missing after core has answered, the answer does not count: the caller reads all missing
objects at once and asks core again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from webhook.core.api.longhorn import Need
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.scheduler.cache import AnySnapshot

ObjectT = TypeVar("ObjectT")
ObjectT_co = TypeVar("ObjectT_co", covariant=True)


class Kind(StrEnum):
    """The kinds that core reads. NODE is the Kubernetes Node, LONGHORN_NODE is longhorn.io's Node."""

    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    PERSISTENT_VOLUME = "PersistentVolume"
    SHARE_MANAGER = "ShareManager"
    SHARE_MANAGER_POD = "share-manager Pod"
    NODE = "Node"
    LONGHORN_NODE = "Longhorn Node"
    VOLUME_ATTACHMENT = "Longhorn VolumeAttachment"
    CSI_NODE = "CSINode"
    NAMESPACE = "Namespace"
    CLUSTER_AUTOSCALER_STATUS = "ConfigMap cluster-autoscaler-status"
    VIRT_LAUNCHER_POD = "virt-launcher Pod"
    VIRT_LAUNCHERS_ON_NODE = "virt-launcher Pods on a node"
    VIRTUAL_MACHINE = "VirtualMachine"
    VIRTUAL_MACHINE_INSTANCE = "VirtualMachineInstance"


KINDS_OF_VMS: Final = (Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE)
"""Those that a decision can do without: a view that has no list of them does not ask for one."""


class ObjectRef(NamedTuple, Generic[ObjectT_co]):
    """A reference to one object, with its type (webhook.core.refs). The namespace of Longhorn's objects stays empty.

    VIRT_LAUNCHERS_ON_NODE refers to the pods of `key.namespace` on the node `key.name`.
    """

    kind: Kind
    key: NamespacedName

    @property
    def name(self) -> str:
        """The object's name."""
        return self.key.name


Ref: TypeAlias = ObjectRef[Any]


USERS_MAX: Final = 100
"""How many VMs, and how many pods, of a claim a view names: core asks whether others share the claim, and who has it
hot-plugged."""


class VolumeUsers(NamedTuple):
    """Who uses a Longhorn volume by way of one claim.

    Attributes:
        volumes: the names of all PersistentVolumes that have its CSI volume handle, with a claim or without.
        vms: the names of the VMs that name the claim, in their template or as they run. A VirtualMachineInstance and
            the VirtualMachine that owns it are one VM.
        pods: the names of the unfinished pods that have the claim, each with the VirtualMachineInstance that it belongs
            to: a virt-launcher pod by its owner, and KubeVirt's attachment pod by the virt-launcher pod that owns it.
            The value is empty for any other pod.
        unknown: why there can be more; empty if these are all. No more than USERS_MAX of a kind are named.
    """

    volumes: Sequence[str] = ()
    vms: Sequence[str] = ()
    pods: Mapping[str, str] = {}
    unknown: str = ""


class NoObject(Enum):
    """Why a view has no object to return."""

    NOT_FOUND = "the cluster has no such object"
    UNAVAILABLE = "the object was not read yet, or the API server gave no usable answer in time"


class ClusterView(Protocol):
    """What core can ask of a cluster. Every method returns at once; none raises."""

    @property
    def longhorn_namespace(self) -> str:
        """The namespace of Longhorn's own objects."""

    @property
    def missing(self) -> Collection[Ref]:
        """The objects that core asked for and that were not read yet, in the order of the questions."""

    def get(self, ref: ObjectRef[ObjectT]) -> ObjectT | NoObject:
        """The object; without one the reason why not. A Namespace may lack all labels but LABEL_CO_SCHEDULE."""

    def why_no_owner(self, ref: Ref, uid: str) -> NoObject | None:
        """None if this object exists with this uid. It becomes `missing` if no fresh cache has it with this uid."""

    def without_reads(self) -> ClusterView:
        """The same cluster for questions that are worth no read: nothing that they lack becomes `missing`."""

    def read_error(self, ref: Ref) -> str:
        """Why the answer to `ref` is UNAVAILABLE, in a few words."""

    def staleness(self) -> str | None:
        """Which answers of this view may be out of date because the API server could not confirm them; None for none.

        Such an answer is good enough for a preference. It is not good enough to require a node.
        """

    def has_longhorn_nodes(self) -> bool:
        """Whether the cluster has any nodes.longhorn.io. If it has none, core does not ask for them."""

    def all_longhorn_nodes_lack(self, need: Need) -> bool:
        """Whether Longhorn says of each of its nodes that it lacks this. False if not all of them are known."""

    def node_names(self) -> Sequence[str]:
        """The names of the Kubernetes nodes, in any order; empty if only a request could tell them."""

    def usable_nodes(self) -> int:
        """The number of `node_names` that are Ready and not cordoned."""

    def has_autoscaler(self) -> bool:
        """Whether Karpenter made one of `node_names`, or cluster-autoscaler writes its status; True if not known."""

    def snapshot(self) -> AnySnapshot:
        """Return the nodes and pods; or why there is no snapshot now."""

    def volume_claims(self, volume: str) -> Sequence[NamespacedName] | NoObject:
        """The claims (`spec.claimRef`) of the PersistentVolumes that have this CSI volume handle.

        UNAVAILABLE also if the PersistentVolume that has the handle as its name, as provisioned ones do, is missing.
        """

    def virt_launchers(self, claim: NamespacedName) -> Sequence[Pod] | NoObject:
        """Every virt-launcher pod that uses this claim; UNAVAILABLE if no cache has all of them."""

    def users_of(self, volume: str, claim: NamespacedName) -> VolumeUsers:
        """Who uses the volume with this CSI volume handle by way of `claim`. Nothing is read for the answer."""
