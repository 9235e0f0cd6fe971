"""Would kube-scheduler's PodTopologySpread filter admit this pod on that node? Constraints with DoNotSchedule.

plugins/podtopologyspread/filtering.go. Only bound pods of the same namespace count, and none that is terminating.
Asked twice: of the pod as it is, which is what its owner meant, and of the pod with our pin. Under nodeAffinityPolicy
Honor, the default, a pin leaves the scheduler no other node to compare with, so that it would let the pin override the
constraint; and minDomains above 1 it would take for unmet.
Invariant: what is Allowed here that filter admits either way, for these pods and nodes. Default constraints that are
set in the scheduler's own configuration are not known; those it is built with are soft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.affinity import selector_admits
from webhook.core.feasibility import tolerates
from webhook.core.neighbours import LOOKED_AT_MAX, Found, Neighbours
from webhook.core.newcomer import Newcomer
from webhook.core.objects import Node
from webhook.core.reasons import Reason
from webhook.core.rulings import ALLOWED, Refused, Ruling, Undecided, overall
from webhook.core.selectors import Scope, Selector, parse

_RULE: Final = "the DoNotSchedule topology spread"
_SOFT: Final = "ScheduleAnyway"
_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")


class _Constraint(Struct, frozen=True, kw_only=True):
    """A TopologySpreadConstraint with its defaults."""

    key: str
    selector: Selector
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


def judge(newcomer: Newcomer, node: Node, nodes: Mapping[str, Node], neighbours: Neighbours) -> Ruling:
    """Whether the pod's hard constraints admit `node`, and still do when the pod is pinned to it and nothing else.

    Args:
        nodes: every node of the cluster by its name.
    """
    constraints = _hard(newcomer)
    place = _Place(newcomer, constraints or (), node, nodes)
    if constraints is None:
        return place.refused(Reason.SELECTOR_UNREADABLE)
    for constraint in constraints:
        if constraint.key not in place.labels:
            return place.refused(Reason.TOPOLOGY_LABEL_MISSING, key=constraint.key)
    return overall(_ruling(constraint, place, neighbours) for constraint in constraints)


def _hard(newcomer: Newcomer) -> Sequence[_Constraint] | None:
    """The constraints that can refuse a node; None where one has a selector that does not parse."""
    hard = []
    for constraint in newcomer.spread:
        if constraint.when_unsatisfiable == _SOFT:
            continue
        selector = parse(constraint.label_selector)
        if selector is None:
            return None
        hard.append(
            _Constraint(
                key=constraint.topology_key or "",
                selector=selector.with_keys(constraint.match_label_keys or (), newcomer.labels, wanted=True),
                max_skew=constraint.max_skew or 0,
                min_domains=1 if constraint.min_domains is None else constraint.min_domains,
                honors_affinity=constraint.node_affinity_policy != "Ignore",
                honors_taints=constraint.node_taints_policy == "Honor",
            )
        )
    return hard


class _Place:
    """The candidate node among the others, as the pod's constraints see them."""

    def __init__(
        self, newcomer: Newcomer, constraints: Sequence[_Constraint], node: Node, nodes: Mapping[str, Node]
    ) -> None:
        self.newcomer, self.node, self.nodes = newcomer, node, nodes
        self.name, self.labels = node.metadata.name or "", node.metadata.labels or {}
        self._keys = {constraint.key for constraint in constraints}

    def refused(self, cause: Reason, **names: object) -> Refused:
        return Refused(cause, {"node": self.name, "rule": _RULE, **names})

    def undecided(self, cause: Reason, **names: object) -> Undecided:
        return Undecided(cause, {"node": self.name, "rule": _RULE, **names})

    def is_part(self, node: Node, constraint: _Constraint) -> bool:
        """Whether the constraint sees a node: it has every key, and the policies do not leave it out."""
        labels = node.metadata.labels or {}
        if not self._keys <= labels.keys():
            return False
        if constraint.honors_affinity:
            for key, value in self.newcomer.node_selector.items():
                if labels.get(key) != value:
                    return False
            if not selector_admits(self.newcomer.node_affinity, labels, node.metadata.name):
                return False
        taints = (node.spec.taints if node.spec else None) or ()
        return not constraint.honors_taints or all(
            taint.effect not in _REPELLING_EFFECTS or tolerates(self.newcomer.tolerations, taint) for taint in taints
        )


def _ruling(constraint: _Constraint, place: _Place, neighbours: Neighbours) -> Ruling:
    scope = Scope((place.newcomer.namespace,))
    found = neighbours.find([scope], constraint.selector, rule=_RULE, terminating=False)
    if isinstance(found, Undecided):
        return found
    if constraint.selector.is_everything:
        found = Found()  # countPodsMatchSelector: an empty selector counts no pod, though it matches the newcomer
    own = int(constraint.selector.matches(place.newcomer.labels))
    return overall((_as_it_is(constraint, found, own, place), _pinned(constraint, found, own, place)))


def _as_it_is(constraint: _Constraint, found: Found, own: int, place: _Place) -> Ruling:
    """Whether there would be too many here, as against where there are the fewest.

    Pods that are expected are taken to come where they would be in the way: here, and nowhere else.
    """
    counts = _counts(found.there, constraint, place)
    here = place.labels[constraint.key]
    strangers = [name for name in (*found.there, *found.expected) if name not in place.nodes]
    beside = sum(found.there.get(name, 0) + found.expected.get(name, 0) for name in strangers)
    counts[here] = counts.get(here, 0) + _counts(found.expected, constraint, place).get(here, 0)
    wanted = counts[here] + beside + own - constraint.max_skew  # of each of the others
    if wanted <= 0:
        return ALLOWED
    if strangers:
        return place.undecided(Reason.NEIGHBOUR_ON_UNKNOWN_NODE, other=strangers[0])
    if len(place.nodes) > LOOKED_AT_MAX:
        return place.undecided(Reason.TOO_MANY_NEIGHBOURS, most=LOOKED_AT_MAX)
    names = {"key": constraint.key, "count": counts[here] + own, "most": constraint.max_skew}
    for node in place.nodes.values():
        value = (node.metadata.labels or {}).get(constraint.key)
        if value is not None and counts.get(value, 0) < wanted and place.is_part(node, constraint):
            return place.refused(Reason.SPREAD_SKEW, least=counts.get(value, 0), **names)
    if sum(count >= wanted for count in counts.values()) < constraint.min_domains:
        return place.refused(Reason.SPREAD_DOMAINS, wanted=constraint.min_domains, **names)
    return ALLOWED


def _counts(pods: Mapping[str, int], constraint: _Constraint, place: _Place) -> dict[str, int]:
    """Value of the constraint's label -> how many of these pods are on nodes that have it and are seen."""
    counts: dict[str, int] = {}
    for name, count in pods.items():
        node = place.nodes.get(name)
        if node is not None and place.is_part(node, constraint):
            value = (node.metadata.labels or {})[constraint.key]
            counts[value] = counts.get(value, 0) + count
    return counts


def _pinned(constraint: _Constraint, found: Found, own: int, place: _Place) -> Ruling:
    """With the pin the candidate is all there is: too few domains where minDomains asks for more, so none has fewer.

    With one domain enough it is compared with itself, and admitted.
    """
    if constraint.honors_affinity and constraint.min_domains > 1 and place.is_part(place.node, constraint):
        count = found.there.get(place.name, 0) + found.expected.get(place.name, 0) + own
        if count > constraint.max_skew:
            names = {"key": constraint.key, "count": count, "most": constraint.max_skew}
            return place.refused(Reason.SPREAD_DOMAINS, wanted=constraint.min_domains, **names)
    return ALLOWED
