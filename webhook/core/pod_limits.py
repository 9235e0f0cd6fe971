"""How long the lists of a pod may be. A pod with a longer list is not evaluated, and stays unchanged.

While the webhook decides, it answers nothing else: no other call, and no probe of the kubelet. An evaluation takes time
by the lengths of these lists, for each node that it looks at. No pod of KubeVirt comes near these lengths; anybody who
may create a pod can exceed them. A list that is not here is not walked over, or once only.
Invariant: a pod beyond these limits is admitted within 50 ms of CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Final

from webhook.core.api.affinity import InterPodTerms
from webhook.core.api.meta import LabelSelector
from webhook.core.api.node_selector import NodeSelectorTerm
from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why

WHOLE_BYTES_MAX: Final = 768 * 1024
"""The pod of a longer review is not decoded. A launcher pod has 10 to 20 KB and 256 KiB of annotations at most, which
escapes can double. The slowest 768 KiB, deeply nested objects, take 30 ms to decode."""


def _length(items: Sized | None) -> int:
    return len(items) if items else 0


def _volumes(pod: Pod) -> int:
    return _length(pod.spec.volumes)


def _containers(pod: Pod) -> int:
    return _length(pod.spec.containers) + _length(pod.spec.init_containers)


def _amounts(pod: Pod) -> int:
    containers = *(pod.spec.containers or ()), *(pod.spec.init_containers or ())
    resources = [pod.spec.resources, *(container.resources for container in containers)]
    amounts = (_length(each.requests) + _length(each.limits) for each in resources if each)
    return _length(pod.spec.overhead) + sum(amounts) + sum(_length(container.ports) for container in containers)


def _metadata(pod: Pod) -> int:
    return _length(pod.metadata.labels) + _length(pod.metadata.annotations)


def _node_affinity(pod: Pod) -> int:
    affinity = pod.spec.node_affinity
    if affinity is None:
        return 0
    required = (affinity.required.node_selector_terms if affinity.required else None) or []
    preferred = [each.preference or NodeSelectorTerm() for each in affinity.preferred or ()]
    return sum(map(_term, required)) + sum(map(_term, preferred))


def _term(term: NodeSelectorTerm) -> int:
    requirements = *(term.match_expressions or ()), *(term.match_fields or ())
    return 1 + len(requirements) + sum(_length(each.values) for each in requirements)


def _kinds(pod: Pod) -> Iterable[InterPodTerms]:
    affinity = pod.spec.affinity
    kinds = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return (kind for kind in kinds if kind)


def _inter_pod_terms(pod: Pod) -> int:
    return sum(_length(kind.required) for kind in _kinds(pod))


def _inter_pod_preferences(pod: Pod) -> int:
    return sum(_length(kind.preferred) for kind in _kinds(pod))


def _inter_pod_values(pod: Pod) -> int:
    return sum(
        _length(term.namespaces) + _selector(term.label_selector) + _selector(term.namespace_selector)
        for kind in _kinds(pod)
        for term in kind.required or ()
    )


def _selector(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    expressions = selector.match_expressions or ()
    return _length(selector.match_labels) + sum(1 + _length(each.values) for each in expressions)


_LIMITS: Final[Mapping[str, tuple[int, Callable[[Pod], int]]]] = {
    # A VirtualMachineInstance has 256 volumes at most (kubevirt pkg/virt-operator, the CRD's maxItems), and KubeVirt
    # adds fewer of its own. Each volume and each of 256 interfaces can bring one container.
    "volumes": (512, _volumes),
    "containers": (600, _containers),
    # Two requests and two limits for each container, and the devices and ports of the VM: at 0.5 us each.
    "requests, limits and ports": (4_000, _amounts),
    # Copied once, and sorted once. Users write some tens.
    "labels and annotations": (4_000, _metadata),
    # These are compared with up to 160 nodes (webhook.core.placement.shortlist), at 0.15 us each. KubeVirt writes one
    # label for each feature of a CPU, 200 for a host model.
    "labels of the nodeSelector": (1_000, lambda pod: _length(pod.spec.node_selector)),
    # A list of all nodes by name is the longest that is met. The webhook itself writes 64 terms.
    "requirements of the node affinity": (2_000, _node_affinity),
    # Compared with the taints of a node, of which it has some: 0.3 us each. KubeVirt writes none.
    "tolerations": (64, lambda pod: _length(pod.spec.tolerations)),
    # Compared with up to 110 pods of each node, at 0.15 us each. KubeVirt writes one, into a migration's target.
    "required terms between pods": (16, _inter_pod_terms),
    "labels and namespaces in terms between pods": (1_000, _inter_pod_values),
    # Compared once with what an earlier answer wrote. The webhook writes 8.
    "preferred terms between pods": (256, _inter_pod_preferences),
    # Searched once for a hard one.
    "topology spread constraints": (64, lambda pod: _length(pod.spec.topology_spread_constraints)),
}


def why_too_long(body: bytes) -> Why | None:
    """Return that the review is too long for its pod to be decoded; None if it is not."""
    if len(body) <= WHOLE_BYTES_MAX:
        return None
    return Reason.POD_TOO_LARGE.why(count=len(body), what="bytes in its review", most=WHOLE_BYTES_MAX)


def why_too_large(pod: Pod) -> Why | None:
    """Return which list of the pod is too long; None if none is."""
    for what, (most, count) in _LIMITS.items():
        length = count(pod)
        if length > most:
            return Reason.POD_TOO_LARGE.why(count=length, what=what, most=most)
    return None
