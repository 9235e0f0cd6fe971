"""IncomingPod: the pod under admission, as plugins read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from msgspec import Struct

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.node_selector import NodeSelector
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.storage import PersistentVolume
from webhook.core.scheduler.state.pod_requests import Usage, usage


class ClaimVolume(Struct, frozen=True):
    """A bound claim of the pod, with its PersistentVolume.

    `served_from`: the node of the share-manager that serves the volume, empty if the share-manager is on none. None for
    a volume that is attached to the pod's own node.
    """

    claim: str
    volume: PersistentVolume
    served_from: str | None = None


class IncomingPod(Struct, frozen=True, kw_only=True):
    """A pod under admission, which has no node yet. Of affinity and anti-affinity it has what is required.

    `namespace` is the request's: that of the object can be empty at CREATE. `volumes` are its bound claims; all of them
    must be usable on the pod's node.
    """

    pod: Pod
    namespace: str
    volumes: Sequence[ClaimVolume]
    usage: Usage
    labels: Mapping[str, str]
    affinity: Sequence[PodAffinityTerm]
    anti_affinity: Sequence[PodAffinityTerm]
    node_selector: Mapping[str, str]
    node_affinity: NodeSelector | None
    tolerations: Sequence[Toleration]

    @classmethod
    def of(cls, pod: Pod, namespace: str, volumes: Sequence[ClaimVolume] = ()) -> Self:
        """Return what plugins read of a pod that is being created in `namespace`, with its bound claims."""
        spec, affinity = pod.spec, pod.spec.affinity
        to, away = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
        return cls(
            pod=pod,
            namespace=namespace,
            volumes=volumes,
            usage=usage(spec),
            labels=pod.metadata.labels or {},
            affinity=(to.required if to else None) or (),
            anti_affinity=(away.required if away else None) or (),
            node_selector=spec.node_selector or {},
            node_affinity=spec.required_node_affinity,
            tolerations=spec.tolerations or (),
        )
