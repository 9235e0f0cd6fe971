"""What kube-scheduler's InterPodAffinity and PodTopologySpread filters say, told as plainly as can be.

It walks over every pod for every question, and reads objects as they are in JSON; it shares nothing with the program
but Kubernetes' documents. `tests/apiserver/test_room_parity.py` holds it to the real scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from support.models import oracle

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


def refusals(situation: Situation, *, pinned: bool) -> list[str]:
    """The filters that reject the candidate for the incoming pod; `pinned` to it by a required node affinity."""
    refused = [] if _parses(situation.incoming_pod) else ["an error"]
    if not _has_its_affinity(situation):
        refused.append("affinity")
    if not _keeps_its_distance(situation):
        refused.append("anti-affinity")
    if not _is_let_in(situation):
        refused.append("existing anti-affinity")
    if not _spreads(situation, pinned=pinned):
        refused.append("spread")
    return refused


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


def _parses(pod: Object) -> bool:
    """Whether every label selector of its rules can be read; of how keys and values are formed nothing is said here."""
    rules = [*_terms(pod, "podAffinity"), *_terms(pod, "podAntiAffinity")]
    rules += pod["spec"].get("topologySpreadConstraints") or ()
    selectors = [rule.get(name) or {} for rule in rules for name in ("labelSelector", "namespaceSelector")]
    expressions = [each for selector in selectors for each in selector.get("matchExpressions") or ()]
    return all(bool(each.get("values")) == each["operator"].endswith("In") for each in expressions)


def labels_of(described: Object) -> Labels:
    """An object's labels."""
    return described["metadata"].get("labels") or {}


def _terms(pod: Object, kind: str) -> Sequence[Object]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(REQUIRED) or ()


def _merged(selector: Object | None, pod: Object, keys: Mapping[str, Sequence[str]]) -> Object | None:
    """The selector as the API server stores it, for the label keys that must match (In) or must not (NotIn)."""
    if selector is None:
        return None
    more = [
        {"key": key, "operator": operator, "values": [labels_of(pod)[key]]}
        for operator, named in keys.items()
        for key in named or ()
        if key in labels_of(pod)
    ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *more]}


def _own(situation: Situation, kind: str) -> Sequence[Object]:
    """The incoming pod's terms, with their label keys merged."""
    pod = situation.incoming_pod
    return [
        {
            **term,
            "labelSelector": _merged(
                term.get("labelSelector"),
                pod,
                {"In": term.get("matchLabelKeys") or (), "NotIn": term.get("mismatchLabelKeys") or ()},
            ),
        }
        for term in _terms(pod, kind)
    ]


def _is_about(situation: Situation, term: Object, owner: Object, pod: Object) -> bool:
    """Whether a term of `owner` is about `pod`."""
    namespaces, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not namespaces and selector is None:
        namespaces = [owner["metadata"]["namespace"]]
    namespace = pod["metadata"]["namespace"]
    if namespace not in namespaces and not matches(selector, situation.namespaces[namespace]):
        return False
    return matches(term.get("labelSelector"), labels_of(pod))


def _own_is_about(situation: Situation, term: Object, pod: Object) -> bool:
    return _is_about(situation, term, situation.incoming_pod, pod)


def _on_nodes(situation: Situation) -> Iterator[tuple[Object, Object]]:
    by_name = {node["metadata"]["name"]: node for node in situation.nodes}
    for pod in situation.pods:
        if node := by_name.get(pod["spec"].get("nodeName")):
            yield pod, node


def _has_its_affinity(situation: Situation) -> bool:
    terms, labels = _own(situation, "podAffinity"), labels_of(situation.node)
    pairs: set[tuple[str, str]] = set()
    for pod, node in _on_nodes(situation):
        if terms and all(_own_is_about(situation, term, pod) for term in terms):
            keys = {term["topologyKey"] for term in terms} & labels_of(node).keys()
            pairs |= {(key, labels_of(node)[key]) for key in keys}
    if any(term["topologyKey"] not in labels for term in terms):
        return False
    if all((term["topologyKey"], labels[term["topologyKey"]]) in pairs for term in terms):
        return True
    return not pairs and all(_own_is_about(situation, term, situation.incoming_pod) for term in terms)


def _is_same(key: str, node: Object, other: Object) -> bool:
    return key in labels_of(node) and labels_of(node)[key] == labels_of(other).get(key)


def _keeps_its_distance(situation: Situation) -> bool:
    return not any(
        _is_same(term["topologyKey"], situation.node, node) and _own_is_about(situation, term, pod)
        for term in _own(situation, "podAntiAffinity")
        for pod, node in _on_nodes(situation)
    )


def _is_let_in(situation: Situation) -> bool:
    return not any(
        _is_same(term["topologyKey"], situation.node, node) and _is_about(situation, term, pod, situation.incoming_pod)
        for pod, node in _on_nodes(situation)
        for term in _terms(pod, "podAntiAffinity")
    )


def _spreads(situation: Situation, *, pinned: bool) -> bool:
    pod, candidate = situation.incoming_pod, situation.node
    constraints = [
        each for each in pod["spec"].get("topologySpreadConstraints") or () if each["whenUnsatisfiable"] != _SOFT
    ]
    keys = {constraint["topologyKey"] for constraint in constraints}
    for constraint in constraints:
        key = constraint["topologyKey"]
        if key not in labels_of(candidate):
            return False
        selector = _merged(constraint.get("labelSelector"), pod, {"In": constraint.get("matchLabelKeys") or ()})
        counts: dict[str, int] = {}
        for node in situation.nodes:
            if keys <= labels_of(node).keys() and _takes_part(constraint, situation, node, pinned=pinned):
                counted = sum(_counts(selector, each, pod) for each, there in _on_nodes(situation) if there is node)
                counts[labels_of(node)[key]] = counts.get(labels_of(node)[key], 0) + counted
        least = min(counts.values(), default=2**31 - 1)
        if len(counts) < (constraint.get("minDomains") or 1):
            least = 0
        here = counts.get(labels_of(candidate)[key], 0) + matches(selector, labels_of(pod))
        if here - least > constraint["maxSkew"]:
            return False
    return True


_SOFT: Final = "ScheduleAnyway"


def _counts(selector: Object | None, pod: Object, incoming_pod: Object) -> bool:
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return False
    metadata = pod["metadata"]
    return (
        metadata["namespace"] == incoming_pod["metadata"]["namespace"]
        and "deletionTimestamp" not in metadata
        and matches(selector, labels_of(pod))
    )


def _takes_part(constraint: Object, situation: Situation, node: Object, *, pinned: bool) -> bool:
    if constraint.get("nodeAffinityPolicy") != "Ignore":
        if pinned and node is not situation.node:
            return False
        if not oracle.affinity_admits(situation.incoming_pod, node):
            return False
    if constraint.get("nodeTaintsPolicy") == "Honor":
        tolerations = situation.incoming_pod["spec"].get("tolerations") or ()
        taints = (node.get("spec") or {}).get("taints") or ()
        return all(each["effect"] == "PreferNoSchedule" or oracle.tolerated(tolerations, each) for each in taints)
    return True
