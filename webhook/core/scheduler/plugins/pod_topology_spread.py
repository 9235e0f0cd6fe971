"""Would kube-scheduler's PodTopologySpread filter admit this pod on that node? Constraints with DoNotSchedule.

plugins/podtopologyspread/filtering.go, and as there in two parts: `pre_filter` counts pods by topology once for a pod,
`filter_node` then compares what each node's topology has. Only bound pods of the same namespace count, and none that is
terminating.
Asked twice: of the pod as it is, which is what its owner meant, and of the pod with our pin. Under nodeAffinityPolicy
Honor, the default, a pin leaves the scheduler no other node to compare with, so that it would let the pin override the
constraint; and minDomains above 1 it would take for unmet.
Invariant: what is Allowed here that filter admits either way, for these pods and nodes. Default constraints that are
set in the scheduler's own configuration are not known; those it is built with are soft.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import OutOfSteps
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.label_selector import Scope, Selector, parse
from webhook.core.scheduler.state.pod_index import Found
from webhook.core.scheduler.status import PASSED, Rejected, Status, Unknown, overall
from webhook.core.scheduler.topology.domains import Domains, domains
from webhook.core.scheduler.topology.inclusion import Inclusion
from webhook.core.scheduler.topology.search import Search

_RULE: Final = "the DoNotSchedule topology spread"
_SOFT: Final = "ScheduleAnyway"


class _Constraint(Struct, frozen=True, kw_only=True):
    """A TopologySpreadConstraint with its defaults. `own`: 1 where the incoming pod counts for it, or 0."""

    key: str
    selector: Selector
    max_skew: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool
    own: int


class _Counted(Struct, frozen=True):
    """A constraint and its domains, or why they are not known.

    `alone`: the pods on each node that it sees, where it would see one alone when the incoming pod is pinned to that.
    """

    constraint: _Constraint
    domains: Domains | Unknown
    alone: Mapping[str, int] = {}


class PreFilterState(Struct, frozen=True):
    """What is known of a pod before any node is looked at. None: a selector of the pod's can't be read."""

    counted: Sequence[_Counted] | None


def pre_filter(incoming: IncomingPod, search: Search) -> PreFilterState:
    """Count the pods that the incoming pod's hard constraints are about."""
    constraints = _hard(incoming)
    if constraints is None:
        return PreFilterState(None)
    keys = {constraint.key for constraint in constraints}
    return PreFilterState([_counted(each, keys, incoming, search) for each in constraints])


def _hard(incoming: IncomingPod) -> Sequence[_Constraint] | None:
    """The constraints that can refuse a node; None where one has a selector that does not parse."""
    hard = []
    for constraint in incoming.spread:
        if constraint.when_unsatisfiable == _SOFT:
            continue
        parsed = parse(constraint.label_selector)
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


def _counted(constraint: _Constraint, keys: Collection[str], incoming: IncomingPod, search: Search) -> _Counted:
    inclusion = Inclusion(
        incoming,
        keys,
        search,
        honors_affinity=constraint.honors_affinity,
        honors_taints=constraint.honors_taints,
    )
    found: Found | Unknown = Found()
    if not constraint.selector.is_everything:  # countPodsMatchSelector: that counts no pod, though it matches each
        found = search.find([Scope((incoming.namespace,), of_newcomer=True)], constraint.selector, rule=_RULE)
    if isinstance(found, Unknown):
        return _Counted(constraint, found)
    try:
        counted = domains(constraint.key, found, inclusion, search)
        asked = constraint.honors_affinity and constraint.min_domains > 1
        both = inclusion.among(found.there.keys() | found.expected.keys()) if asked else ()
        return _Counted(constraint, counted, {name: found.there[name] + found.expected[name] for name in both})
    except OutOfSteps:
        return _Counted(constraint, search.gave_up(_RULE))


def filter_node(state: PreFilterState, node: Node) -> Status:
    """Whether the hard constraints admit `node`, and still do when the pod is pinned to it and nothing else."""
    name, labels = node.metadata.name or "", node.metadata.labels or {}
    if state.counted is None:
        return _refused(name, Reason.SELECTOR_UNREADABLE)
    for counted in state.counted:
        if counted.constraint.key not in labels:
            return _refused(name, Reason.TOPOLOGY_LABEL_MISSING, key=counted.constraint.key)
    return overall(_rulings(state.counted, name, labels))


def _rulings(all_counted: Iterable[_Counted], name: str, labels: Mapping[str, str]) -> Iterator[Status]:
    for counted in all_counted:
        constraint, found = counted.constraint, counted.domains
        if isinstance(found, Unknown):
            yield found
        else:
            yield _as_it_is(constraint, found, name, labels[constraint.key])
            yield _pinned(constraint, counted.alone.get(name, 0), name)


def _as_it_is(constraint: _Constraint, found: Domains, node: str, here: str) -> Status:
    """Whether there would be too many here, as against where there are the fewest.

    Pods that are expected are taken to come where they would be in the way: here, and nowhere else.
    """
    at = found.at(here)
    wanted = at + found.beside + constraint.own - constraint.max_skew  # of each of the others
    if wanted <= 0:
        return PASSED
    if found.stranger is not None:
        return Unknown(Reason.NEIGHBOUR_ON_UNKNOWN_NODE, {"node": node, "rule": _RULE, "other": found.stranger})
    names = {"key": constraint.key, "count": at + constraint.own, "most": constraint.max_skew}
    for value, count in found.fewest:
        least = at if value == here else count
        if least < wanted:
            return _refused(node, Reason.SPREAD_SKEW, least=least, **names)
    if found.count < constraint.min_domains:
        return _refused(node, Reason.SPREAD_DOMAINS, wanted=constraint.min_domains, **names)
    return PASSED


def _pinned(constraint: _Constraint, there: int, node: str) -> Status:
    """With the pin the candidate is all there is: too few domains where minDomains asks for more, so none has fewer.

    With one domain enough it is compared with itself, and admitted.
    """
    if there == 0 or there + constraint.own <= constraint.max_skew:
        return PASSED
    names = {"key": constraint.key, "count": there + constraint.own, "most": constraint.max_skew}
    return _refused(node, Reason.SPREAD_DOMAINS, wanted=constraint.min_domains, **names)


def _refused(node: str, cause: Reason, **names: object) -> Rejected:
    return Rejected(cause, {"node": node, "rule": _RULE, **names})
