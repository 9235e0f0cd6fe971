"""Share-manager pods on nodes: steered to their VM by the webhook or not, and where they are.

`AWAY` is the case that hurts: the node that it prefers had no room for it, so a descheduler can find a better node.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coexistence.cluster import Cluster
from support.control_plane.cluster_state import UNSCHEDULED
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import Start, decision
from support.objects import builders

VM_NODE: Final = "node-g"
OTHER_NODE: Final = "node-h"
NO_EVICTION: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


class ShareManager(NamedTuple):
    """A share-manager pod.

    `steered`: its VM asks for co-scheduling, so the webhook writes a preference. `on` is its node. `annotated` and
    `near`: it has the annotation against evictions; a preferred affinity to the VM's pod in place of that for a node.
    """

    title: str
    steered: bool
    on: str
    annotated: bool = False
    near: bool = False

    @property
    def start(self) -> Start:
        """Its VM."""
        return Start(f"sm-{ALL.index(self)}")

    def objects(self) -> list[Object]:
        """The VM on its node, and the volume that it asked for there."""
        asked = "true" if self.steered else None
        attachment = builders.volume_attachment(self.start.volume, [("csi-attacher", VM_NODE)])
        return [*self.start.shelf, self.start.launcher(node=VM_NODE, opt_in=asked), attachment]

    def create(self, cluster: Cluster) -> Object:
        """The pod, as Longhorn creates it, on its node."""
        pod = builders.share_manager_pod(self.start.volume, phase=None, schedulerName=UNSCHEDULED)
        if self.annotated:
            pod["metadata"]["annotations"][NO_EVICTION] = ""
        if self.near:
            pod["spec"]["affinity"] = {
                "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [self._near()]}
            }
        created = cluster.api.create(pod)
        assert decision(created).startswith(f"preferred on {VM_NODE}: ") is self.steered, decision(created)
        cluster.bind(created, self.on)
        return created

    def _near(self) -> Object:
        labels = self.start.launcher()["metadata"]["labels"]
        selector = {"matchLabels": {"kubevirt.io/created-by": labels["kubevirt.io/created-by"]}}
        term = {
            "labelSelector": selector,
            "namespaces": [builders.NAMESPACE],
            "topologyKey": "kubernetes.io/hostname",
        }
        return {"weight": 100, "podAffinityTerm": term}


_STEERED: Final = "steered share-manager pod"
_PLAIN: Final = "share-manager pod with nothing of ours"
HOME: Final = ShareManager(f"{_STEERED} (on its VM's node)", steered=True, on=VM_NODE)
AWAY: Final = ShareManager(f"{_STEERED} (on another node)", steered=True, on=OTHER_NODE)
KEPT_HOME: Final = ShareManager(
    f"{_STEERED} with prefer-no-eviction (on its VM's node)", steered=True, on=VM_NODE, annotated=True
)
KEPT_AWAY: Final = ShareManager(
    f"{_STEERED} with prefer-no-eviction (on another node)", steered=True, on=OTHER_NODE, annotated=True
)
PLAIN_HOME: Final = ShareManager(f"{_PLAIN} (on its VM's node)", steered=False, on=VM_NODE)
PLAIN: Final = ShareManager(f"{_PLAIN} (on another node)", steered=False, on=OTHER_NODE)
NEAR: Final = ShareManager(
    "share-manager pod that prefers its VM's pod, not a node (on another node)", steered=False, on=OTHER_NODE, near=True
)
ALL: Final = (HOME, AWAY, KEPT_HOME, KEPT_AWAY, PLAIN_HOME, PLAIN, NEAR)


def objects() -> list[Object]:
    """What there is of their VMs."""
    return [each for share_manager in ALL for each in share_manager.objects()]
