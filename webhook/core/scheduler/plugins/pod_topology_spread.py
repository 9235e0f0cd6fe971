"""kube-scheduler's PodTopologySpread plugin (pkg/scheduler/framework/plugins/podtopologyspread/filtering.go).

Constraints with DoNotSchedule. As upstream in two parts: once for the pod the plugin counts pods by topology, then it
compares the counts for each node. Only bound pods of the same namespace count, without those that are being deleted.
The plugin evaluates two pods: the pod as its owner wrote it, and the pod that the webhook has pinned to the node. With
nodeAffinityPolicy Honor, the default, kube-scheduler compares a pinned pod's node with no other node. A pin would then
override the constraint, and minDomains above 1 would never be met.
Invariant: the plugin rejects neither of the two on a node that passes here, for these pods and nodes. Default
constraints in kube-scheduler's own configuration are not known; those that are built in are soft.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import OutOfSteps
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.matching.label_selector import Scope, Selector, parse_selector
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.snapshot import NotCounted
from webhook.core.scheduler.status import PASSED, Rejected, Status, Unknown, merge
from webhook.core.scheduler.topology.domains import Domains, count_domains
from webhook.core.scheduler.topology.node_inclusion import NodeInclusion
from webhook.core.scheduler.topology.topology_lookup import TopologyLookup

_RULE: Final = "the DoNotSchedule topology spread"
_SOFT: Final = "ScheduleAnyway"


class _Constraint(Struct, frozen=True, kw_only=True):
    """A TopologySpreadConstraint with its defaults. `own` is 1 if the incoming pod counts for it, or 0."""

    key: str
    selector: Selector
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    own: int


class _Counted(Struct, frozen=True):
    """A constraint and its domains, or why they are not known.

    `if_pinned`: the number of pods by node, for nodes that would be the only one if the incoming pod is pinned to them.
    """

    constraint: _Constraint
    domains: Domains | Unknown
    if_pinned: Mapping[str, int] = {}


class PreFilterState(Struct, frozen=True):
    """What the plugin has counted for the incoming pod. None if a selector of the pod can't be parsed."""

    counted: Sequence[_Counted] | None


def pre_filter(cycle: CycleState) -> Status:
    """Return Unknown for a pod with a hard constraint if pods are not counted."""
    if isinstance(cycle.snapshot, NotCounted):
        for constraint in cycle.incoming.spread:
            if constraint.when_unsatisfiable != _SOFT:
                return Unknown(Reason.TOPOLOGY_SPREAD, {"key": constraint.topology_key})
    return PASSED


def filter_node(cycle: CycleState, node: NodeInfo) -> Status:
    """Return whether the hard constraints accept the node, and also if the pod is pinned to the node."""
    counted, name, labels = cycle.state(_search).counted, node.name, node.labels
    if counted is None:
        return _rejected(name, Reason.SELECTOR_UNREADABLE)
    for each in counted:
        if each.constraint.key not in labels:
            return _rejected(name, Reason.TOPOLOGY_LABEL_MISSING, key=each.constraint.key)
    return merge(_statuses(counted, name, labels))


def has_hard_constraint(incoming: IncomingPod) -> bool:
    """Whether the pod has a constraint that can reject a node."""
    return any(constraint.when_unsatisfiable != _SOFT for constraint in incoming.spread)


def _search(incoming: IncomingPod, lookup: TopologyLookup) -> PreFilterState:
    """Count the pods that the incoming pod's hard constraints are about."""
    constraints = _hard(incoming)
    if constraints is None:
        return PreFilterState(None)
    keys = {constraint.key for constraint in constraints}
    return PreFilterState([_count(each, keys, incoming, lookup) for each in constraints])


def _hard(incoming: IncomingPod) -> Sequence[_Constraint] | None:
    """Return the constraints that can reject a node; None if one has a selector that does not parse."""
    hard = []
    for constraint in incoming.spread:
        if constraint.when_unsatisfiable == _SOFT:
            continue
        parsed = parse_selector(constraint.label_selector)
        if parsed is None:
            return None
        selector = parsed.with_keys(constraint.match_label_keys or (), incoming.labels, wanted=True)
        hard.append(
            _Constraint(
                key=constraint.topology_key or "",
                selector=selector,
                max_skew=constraint.max_skew or 0,
                min_domains=1 if constraint.min_domains is None else constraint.min_domains,
                honors_affinity=constraint.node_affinity_policy != "Ignore",
                honors_taints=constraint.node_taints_policy == "Honor",
                own=int(selector.matches(incoming.labels)),
            )
        )
    return hard


def _count(constraint: _Constraint, keys: Collection[str], incoming: IncomingPod, lookup: TopologyLookup) -> _Counted:
    inclusion = NodeInclusion(
        incoming,
        keys,
        lookup,
        honors_affinity=constraint.honors_affinity,
        honors_taints=constraint.honors_taints,
    )
    found: Found | Unknown = Found()
    if not constraint.selector.is_everything:  # an empty selector matches each pod, and countPodsMatchSelector counts 0
        found = lookup.find([Scope((incoming.namespace,), of_incoming_pod=True)], constraint.selector, rule=_RULE)
    if isinstance(found, Unknown):
        return _Counted(constraint, found)
    try:
        domains = count_domains(constraint.key, found, inclusion, lookup)
        matters = constraint.honors_affinity and constraint.min_domains > 1
        names = inclusion.among(found.running.keys() | found.expected.keys()) if matters else ()
        return _Counted(constraint, domains, {name: found.running[name] + found.expected[name] for name in names})
    except OutOfSteps:
        return _Counted(constraint, lookup.gave_up(_RULE))


def _statuses(all_counted: Iterable[_Counted], name: str, labels: Mapping[str, str]) -> Iterator[Status]:
    for counted in all_counted:
        constraint, domains = counted.constraint, counted.domains
        if isinstance(domains, Unknown):
            yield domains
        else:
            yield _as_written(constraint, domains, name, labels[constraint.key])
            yield _if_pinned(constraint, counted.if_pinned.get(name, 0), name)


def _as_written(constraint: _Constraint, domains: Domains, node: str, own_value: str) -> Status:
    """Compare the node's domain with the domain that has the fewest pods.

    An expected pod counts where it is in the way: in the node's own domain, and in no other.
    """
    count = domains.at(own_value)
    needed = count + domains.on_unlisted + constraint.own - constraint.max_skew  # in each of the other domains
    if needed <= 0:
        return PASSED
    if domains.unlisted is not None:
        return Unknown(Reason.NEIGHBOUR_ON_UNKNOWN_NODE, {"node": node, "rule": _RULE, "other": domains.unlisted})
    names = {"key": constraint.key, "count": count + constraint.own, "most": constraint.max_skew}
    for value, running in domains.fewest:
        least = count if value == own_value else running
        if least < needed:
            return _rejected(node, Reason.SPREAD_SKEW, least=least, **names)
    if domains.count < constraint.min_domains:
        return _rejected(node, Reason.SPREAD_DOMAINS, wanted=constraint.min_domains, **names)
    return PASSED


def _if_pinned(constraint: _Constraint, count: int, node: str) -> Status:
    """Evaluate the constraint for a pod that is pinned to the node: the node's domain is then the only one.

    If minDomains asks for more, kube-scheduler takes 0 for the fewest pods. If one domain is enough, it compares the
    domain with itself, and accepts the node.
    """
    if count == 0 or count + constraint.own <= constraint.max_skew:
        return PASSED
    names = {"key": constraint.key, "count": count + constraint.own, "most": constraint.max_skew}
    return _rejected(node, Reason.SPREAD_DOMAINS, wanted=constraint.min_domains, **names)


def _rejected(node: str, cause: Reason, **names: object) -> Rejected:
    return Rejected(cause, {"node": node, "rule": _RULE, **names})
