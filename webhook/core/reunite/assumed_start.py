"""AssumedStart: a VM that was just restarted counts on the node that has room for it, until its new pod exists.

KubeVirt waits before it starts the VM again, so that no pod shows meanwhile what the VM will take. If nothing counted
these starts, two stuck VMs would both be restarted for the last free resources of one node.
Invariant: an assumed start only makes a node look fuller. If assumed starts are lost, a VM can be restarted in vain,
once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import pod_infos
from webhook.core.observe.vm_status import VMStatus
from webhook.core.scheduler.state.existing_terms import ExistingTerms
from webhook.core.scheduler.state.node_info import NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_requests import Usage
from webhook.core.scheduler.state.snapshot import Snapshot

ASSUMED_SECONDS: Final = 300.0  # kubevirt watch/vm/vm.go, defaultMaxCrashLoopBackoffDelaySeconds: the longest wait


class AssumedStart(Struct, frozen=True, kw_only=True):
    """What one VM will take.

    Attributes:
        pod: the name of the pod that was deleted.
        node: the node that takes the VM.
        usage: what the VM requests there.
        until: when the VM counts no longer (seconds since 1970), if no new pod ends that before.
    """

    namespace: str
    vmi: str
    pod: str
    node: str
    usage: Usage
    until: float


def still_assumed(assumed: Iterable[AssumedStart], rows: Iterable[VMStatus], now: float) -> list[AssumedStart]:
    """Return the starts of VMs that have no new pod yet."""
    pods = {(row.namespace, row.name): row.pod for row in rows}
    return [
        start
        for start in assumed
        if now < start.until and pods.get((start.namespace, start.vmi), start.pod) == start.pod
    ]


class SnapshotWithStarts:
    """A Snapshot that also counts assumed starts, and does not count one pod that waits."""

    def __init__(self, snapshot: Snapshot, assumed: Iterable[AssumedStart], without: Pod) -> None:
        self._snapshot = snapshot
        self._assumed: dict[str, list[Usage]] = {}
        for start in assumed:
            self._assumed.setdefault(start.node, []).append(start.usage)
        self._left_out = {info.on.node: info.usage for info in pod_infos(without)}

    @property
    def hostnames(self) -> Mapping[str, int]:
        """The number of nodes by their label kubernetes.io/hostname."""
        return self._snapshot.hostnames

    @property
    def existing_terms(self) -> ExistingTerms:
        """Required anti-affinity of pods. That of the pod that waits is among it, that of assumed starts is not."""
        return self._snapshot.existing_terms

    @property
    def headroom(self) -> Mapping[str, int]:
        """How much of each resource must stay free on a node."""
        return self._snapshot.headroom

    @property
    def replicas(self) -> int:
        """The number of replicas of the webhook."""
        return self._snapshot.replicas

    def node_info(self, name: str) -> NodeInfo:
        """Return the node of that name with its pods and assumed starts."""
        info = self._snapshot.node_info(name)
        if name not in self._assumed and name not in self._left_out:
            return info
        requested = info.requested.copy()
        for usage in self._assumed.get(name, ()):
            requested.add(usage)
        own = self._left_out.get(name)
        if own and _includes(requested, own):
            requested.add(own, -1)
        return replace(info, requested=requested)

    def shortlisted(self, *, assumed: bool) -> Mapping[Usage, int]:
        """Return the number of pods of each shape that may run on a short list of nodes only."""
        return self._snapshot.shortlisted(assumed=assumed)


def _includes(requested: NodeRequests, usage: Usage) -> bool:
    """Whether a pod can be among those that are counted: no node counts a pod that is larger than the whole node."""
    amounts = all(requested.amounts.get(resource, 0) >= amount for resource, amount in usage.requests)
    return requested.pods > 0 and amounts and all(port in requested.ports for port in usage.ports)
