"""Share-manager pods on nodes: steered to their VM by the webhook or not, and where they are.

`AWAY` is the case that hurts: the node that it prefers had no room for it, so a descheduler can find a better node.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coexistence.cluster import Cluster
from coexistence.forms import node
from support.control_plane.cluster_state import UNSCHEDULED
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import Start, decision
from support.objects import builders

from webhook.core.reasons import ANNOTATION_NO_EVICTION as NO_EVICTION

VM_NODE: Final = "node-g"
SOFT_NODE: Final = "node-f"
OTHER_NODE: Final = "node-h"


class ShareManager(NamedTuple):
    """A share-manager pod.

    `steered`: its VM asks for co-scheduling, so the webhook writes a preference, and asks for no eviction. `on` is its
    node, `vm_node` that of its VM. `by_node`: somebody else wrote a preferred node affinity for the VM's node.
    """

    title: str
    steered: bool
    on: str
    by_node: bool = False
    vm_node: str = VM_NODE

    @property
    def form(self) -> str:
        """Its title without its place."""
        return self.title.partition(" (")[0]

    @property
    def start(self) -> Start:
        """Its VM."""
        return Start(f"sm-{ALL.index(self)}")

    def objects(self) -> list[Object]:
        """The VM on its node, and the volume that it asked for there."""
        asked = "true" if self.steered else None
        attachment = builders.volume_attachment(self.start.volume, [("csi-attacher", self.vm_node)])
        return [*self.start.shelf, self.start.launcher(node=self.vm_node, opt_in=asked), attachment]

    def bound(self, cluster: Cluster) -> Object:
        """The pod on its node."""
        created = self.create(cluster, UNSCHEDULED)
        cluster.bind(created, self.on)
        return created

    def create(self, cluster: Cluster, scheduler: str) -> Object:
        """The pod, as Longhorn creates it, for this scheduler."""
        pod = builders.share_manager_pod(self.start.volume, phase=None, schedulerName=scheduler)
        if self.by_node:
            pod["spec"]["affinity"] = builders.node_affinity(preferred={self.vm_node: 100})
        created = cluster.api.create(pod)
        assert decision(created).startswith(f"preferred on {self.vm_node}: ") is self.steered, decision(created)
        has_node_affinity = "nodeAffinity" in (created["spec"].get("affinity") or {})
        assert has_node_affinity is (self.by_node or self.vm_node == SOFT_NODE)
        assert (NO_EVICTION in created["metadata"]["annotations"]) is self.steered
        return created


_STEERED: Final = "steered share-manager pod"
_PLAIN: Final = "share-manager pod with nothing of ours"
HOME: Final = ShareManager(f"{_STEERED} (on its VM's node)", steered=True, on=VM_NODE)
AWAY: Final = ShareManager(f"{_STEERED} (on another node)", steered=True, on=OTHER_NODE)
PLAIN_HOME: Final = ShareManager(f"{_PLAIN} (on its VM's node)", steered=False, on=VM_NODE)
PLAIN: Final = ShareManager(f"{_PLAIN} (on another node)", steered=False, on=OTHER_NODE)
BY_NODE: Final = ShareManager(
    "share-manager pod with a preferred node affinity (on another node)", steered=False, on=OTHER_NODE, by_node=True
)
SOFT: Final = ShareManager(
    f"{_STEERED} of a VM beside a soft taint (on another node)", steered=True, on=OTHER_NODE, vm_node=SOFT_NODE
)
ALL: Final = (HOME, AWAY, PLAIN_HOME, PLAIN, BY_NODE, SOFT)


def objects() -> list[Object]:
    """What there is of their VMs, and the node with the soft taint."""
    described = [each for share_manager in ALL for each in share_manager.objects()]
    return [*node(SOFT_NODE, taints=["old=:PreferNoSchedule"]), *described]
