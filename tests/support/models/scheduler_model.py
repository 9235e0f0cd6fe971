"""Which nodes kube-scheduler's InterPodAffinity filter rejects by required anti-affinity, told as plainly as can be.

It walks over every pod for every question, and reads objects as they are in JSON; it shares nothing with the program
but Kubernetes' documents. The rules between a pod and a node are those of `support.models.oracle`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Object = dict[str, Any]
Labels = Mapping[str, str]

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Situation:
    """A cluster, a pod that is to be scheduled, and the name of a node that it may be pinned to."""

    nodes: Sequence[Object]
    pods: Sequence[Object]  # on nodes
    namespaces: Mapping[str, Labels]
    incoming_pod: Object
    candidate: str

    @property
    def node(self) -> Object:
        """The Node object of the candidate."""
        return next(node for node in self.nodes if node["metadata"]["name"] == self.candidate)


def refuses(situation: Situation) -> bool:
    """Whether the candidate is rejected by an anti-affinity of the incoming pod, or of a pod on a node."""
    nodes = {node["metadata"]["name"]: node for node in situation.nodes}
    incoming = situation.incoming_pod
    return any(
        _is_same(term["topologyKey"], situation.node, nodes[pod["spec"]["nodeName"]])
        and _is_about(situation, term, owner, other)
        for pod in situation.pods
        if pod["spec"]["nodeName"] in nodes
        for owner, other in ((incoming, pod), (pod, incoming))
        for term in _terms(owner)
    )


def matches(selector: Object | None, labels: Labels) -> bool:
    """Whether a metav1.LabelSelector selects these labels."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or ():
        value = labels.get(expression["key"])
        held = {
            "In": value is not None and value in (expression.get("values") or ()),
            "NotIn": value is None or value not in (expression.get("values") or ()),
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[expression["operator"]]
        if not held:
            return False
    return True


def labels_of(described: Object) -> Labels:
    """An object's labels."""
    return described["metadata"].get("labels") or {}


def _terms(pod: Object) -> Sequence[Object]:
    return ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(REQUIRED) or ()


def _is_about(situation: Situation, term: Object, owner: Object, pod: Object) -> bool:
    """Whether a term of `owner` is about `pod`."""
    namespaces, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not namespaces and selector is None:
        namespaces = [owner["metadata"]["namespace"]]
    namespace = pod["metadata"]["namespace"]
    if namespace not in namespaces and not matches(selector, situation.namespaces[namespace]):
        return False
    return matches(term.get("labelSelector"), labels_of(pod))


def _is_same(key: str, node: Object, other: Object) -> bool:
    return key in labels_of(node) and labels_of(node)[key] == labels_of(other).get(key)
