"""CycleState: one pod under admission, what is known of its cluster, and where pods on nodes can exclude it.

Upstream: CycleState in pkg/scheduler/framework/cycle_state.go. The incoming pod's rules are read once, and then node by
node is filtered.

kube-scheduler's InterPodAffinity plugin (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go): only the
required anti-affinity of pods on nodes is compared with the incoming pod (satisfyExistingPodsAntiAffinity). A term
rejects the nodes that have the value of its pod's node. A pod that is not bound yet can be bound first. A pod with
required terms of its own is never required on a node (webhook.core.scheduler.never_required).
Invariant: the plugin does not reject a node that passes here, for a pod without such terms and these pods and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from webhook.core.api.pod import Pod
from webhook.core.large_pod import PART_BYTES_MAX
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import UNLISTED, AnySnapshot, NodeInfo, Snapshot, SnapshotUnavailable
from webhook.core.scheduler.label_selector import Term
from webhook.core.scheduler.node_affinity import ClaimVolume
from webhook.core.scheduler.pod_requests import usage

TERMS_MAX: Final = 1_000  # 0.4 us for each comparison: a tenth of the 5 ms that an admission may take
NODES_MAX: Final = 10_000  # twice the nodes of the largest clusters; 0.2 us for the value of each


class Excluding(NamedTuple):
    """A term of other pods that can be meant for the incoming pod.

    `values`: those that its topology key has on the nodes of these pods; None for a node that is not known.
    """

    term: Term
    values: frozenset[str | None]


def excluding(namespace: str, labels: Mapping[str, str], snapshot: Snapshot) -> Sequence[Excluding] | Why:
    """Return the terms that can be meant for a pod with these labels; or that they are too many."""
    found, places = [], 0
    near = snapshot.scheduler_cache.existing_terms.near(namespace, labels)
    for compared, (term, nodes) in enumerate(near, start=1):
        if term.matches(namespace, labels):
            places += len(nodes)
            if places <= NODES_MAX:
                found.append(Excluding(term, frozenset(_values(term.topology_key, nodes, snapshot))))
        if compared > TERMS_MAX or places > NODES_MAX:
            return Reason.TOO_MANY_EXISTING_TERMS.why(terms=TERMS_MAX, nodes=NODES_MAX)
    return found


def _values(key: str, nodes: Iterable[str], snapshot: Snapshot) -> Iterable[str | None]:
    """Yield the values of a label. A node without it is in no topology; a node that is not known may be in any."""
    for name in nodes:
        node = snapshot.node(name)
        if node is UNLISTED:
            yield None
        elif key in (node.metadata.labels or {}):
            yield node.metadata.label(key)


def why_excluded(terms: Iterable[Excluding], node: NodeInfo) -> Why | None:
    """Return which of the terms can reject the node; None if none can."""
    for term, values in terms:
        key, value = term.topology_key, node.labels.get(term.topology_key)
        if term.unread and (value is None or value in values):  # its requests are perhaps not known, either
            return Reason.POD_NOT_COMPARED.why(which=f"node {node.name}" if key else "some node", most=PART_BYTES_MAX)
        if value is None:
            continue
        if value in values:
            return Reason.EXCLUDED_BY_POD.why(node=node.name, key=key, pods=term)
        if None in values:
            return Reason.MAY_BE_EXCLUDED_BY_POD.why(node=node.name, key=key, pods=term)
    return None


class CycleState:
    """One pod under admission, and the snapshot of its cluster.

    Attributes:
        pod: the incoming pod, which has no node yet.
        namespace: the request's, because that of the object can be empty at CREATE.
        snapshot: the nodes and pods; or why there is no snapshot.
        volumes: the bound claims. All of them must be usable on the pod's node.
        usage: what the pod takes of a node.
    """

    def __init__(self, pod: Pod, namespace: str, snapshot: AnySnapshot, volumes: Sequence[ClaimVolume] = ()) -> None:
        self.pod = pod
        self.namespace = namespace
        self.snapshot = snapshot
        self.volumes = volumes
        self.usage = usage(pod.spec)

    @cached_property
    def excluding(self) -> Sequence[Excluding] | Why:
        """Where required anti-affinity of pods on nodes can exclude the pod; or why that is not compared."""
        if isinstance(self.snapshot, SnapshotUnavailable):
            return ()
        return excluding(self.namespace, self.pod.metadata.labels or {}, self.snapshot)
