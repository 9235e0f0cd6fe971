"""Volume: one of Longhorn's volumes with its share-manager, and the pod that Longhorn makes for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from simulation.api_server import LONGHORN, Object
from support.objects import builders

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass
class Volume:
    """One volume and its share-manager.

    Attributes:
        tickets: the node that each pod wants the volume on, by the pod's key.
        due: a pod is to be created, or is being created.
        delinquent: the node that a fail-over left: the next pod prefers every other node.
    """

    name: str
    tickets: dict[str, str] = field(default_factory=dict)
    state: str = "stopped"
    owner: str = ""
    due: bool = False
    delinquent: str = ""

    @property
    def pod_key(self) -> str:
        """NAMESPACE/NAME of its pod."""
        return f"{LONGHORN}/share-manager-{self.name}"


def pod_of(volume: Volume) -> Object:
    """Return the pod that Longhorn creates; after a fail-over it prefers every node except the delinquent one."""
    pod = builders.share_manager_pod(volume.name, phase=None)
    if volume.delinquent:
        expression = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [volume.delinquent]}
        terms = [{"weight": 100, "preference": {"matchExpressions": [expression]}}]
        pod["spec"]["affinity"] = {"nodeAffinity": {_PREFERRED: terms}}
    return pod
