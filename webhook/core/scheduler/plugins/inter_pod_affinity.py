"""kube-scheduler's InterPodAffinity plugin (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go).

Required pod affinity and anti-affinity, of the incoming pod and of the pods that are on nodes. The plugin has two
parts, as upstream. The first part runs once for the incoming pod and finds the pods that the terms select. The second
part compares the topology labels of each node. Only pods on nodes count, also those that are being deleted.
Invariant: the plugin does not reject a node that passes here, for these pods and nodes. Labels of namespaces other than
their names are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import InterPodTerms
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import OutOfSteps
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.matching.label_selector import Term, conjunction, parse_terms
from webhook.core.scheduler.state.existing_anti_affinity import ExistingTerm
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.node_counts import names
from webhook.core.scheduler.state.node_info import NodeInfo
from webhook.core.scheduler.state.snapshot import NotCounted
from webhook.core.scheduler.status import PASSED, Rejected, Status, StatusTemplate, Unknown, merge
from webhook.core.scheduler.topology.topology_lookup import Topology, TopologyLookup
from webhook.core.scheduler.topology.topology_statuses import TermPods, TopologyStatuses

_AFFINITY: Final = "required pod affinity"
_ANTI_AFFINITY: Final = "required pod anti-affinity"
_EXISTING: Final = "the required anti-affinity of a pod that is there"

_FILED_STEPS: Final = 15  # for `Term.matches`: 1 us
_EXISTING_TERM_STEPS: Final = 45  # for `TopologyStatuses.add_term`, its nodes apart: 3 us


class _NearPods(Struct, frozen=True):
    """What the incoming pod's required affinity has found.

    Attributes:
        values: by topology label of a term, the values of the nodes on which matching pods are.
        always: the status of every node that has these labels, if it is one status.
        far: the status of a node that has none of the values; None if that does not matter.
    """

    values: Mapping[str, Collection[str]] = {}
    always: StatusTemplate | None = None
    far: StatusTemplate | None = None

    def status(self, node: str, labels: Mapping[str, str]) -> Status:
        """Return whether pods that match every term are in the node's topologies (satisfyPodAffinity)."""
        for key in self.values:
            if key not in labels:
                return Rejected(Reason.TOPOLOGY_LABEL_MISSING, {"node": node, "rule": _AFFINITY, "key": key})
        if self.always:
            return self.always.for_node(node)
        unmet = next((key for key, values in self.values.items() if labels[key] not in values), None)
        return PASSED if unmet is None or self.far is None else self.far.for_node(node, key=unmet)


class PreFilterState(Struct, frozen=True):
    """What the plugin has found for the incoming pod before it filters the first node."""

    near: _NearPods
    apart: TopologyStatuses


def pre_filter(cycle: CycleState) -> Status:
    """Return Unknown for a pod with a required term if pods are not counted."""
    affinity = cycle.incoming.pod.spec.affinity
    if affinity is None or not isinstance(cycle.snapshot, NotCounted):
        return PASSED
    if _requires(affinity.pod_affinity):
        return Unknown(Reason.INTER_POD_AFFINITY, {"which": "affinity"})
    if _requires(affinity.pod_anti_affinity):
        return Unknown(Reason.INTER_POD_AFFINITY, {"which": "anti-affinity"})
    return PASSED


def _requires(terms: InterPodTerms | None) -> bool:
    return bool(terms and terms.required)


def filter_node(cycle: CycleState, node: NodeInfo) -> Status:
    """Return whether the pod may join the pods on the node and in its topologies."""
    state, name, labels = cycle.state(_search), node.name, node.labels
    near = state.near.status(name, labels)
    return near if isinstance(near, Rejected) else merge((near, state.apart.status(name, labels)))


def _search(incoming: IncomingPod, lookup: TopologyLookup) -> PreFilterState:
    """Find the pods that the incoming pod's terms are about, and the terms of pods that are about the incoming pod."""
    near = _near(incoming, lookup)
    apart = TopologyStatuses(lookup)
    _add_own_anti_affinity(incoming, lookup, apart)
    _add_existing_anti_affinity(incoming, lookup, apart)
    _add_label_keys(incoming, apart)
    return PreFilterState(near, apart)


def _near(incoming: IncomingPod, lookup: TopologyLookup) -> _NearPods:
    terms = parse_terms(incoming.affinity, incoming.namespace, incoming.labels)
    if terms is None:
        return _NearPods(always=StatusTemplate(Rejected, Reason.SELECTOR_UNREADABLE, {"rule": _AFFINITY}))
    if not terms:
        return _NearPods()
    keys = sorted({term.topology_key for term in terms})
    wanted = conjunction(term.selector for term in terms)
    found = lookup.find([term.scope for term in terms], wanted, rule=_AFFINITY)
    if isinstance(found, Unknown):
        return _NearPods(dict.fromkeys(keys, frozenset()), StatusTemplate.of(found))
    try:
        topologies = {key: lookup.topology(found.bound, key) for key in keys}
    except OutOfSteps:
        return _NearPods(dict.fromkeys(keys, frozenset()), StatusTemplate.of(lookup.gave_up(_AFFINITY)))
    values = {key: topology.values for key, topology in topologies.items()}
    return _NearPods(values, far=_far(incoming, terms, found, topologies))


def _far(
    incoming: IncomingPod, terms: Sequence[Term], found: Found, topologies: Mapping[str, Topology]
) -> StatusTemplate | None:
    """Return the status of a node with no matching pod near; None if the incoming pod is the first of its kind.

    It is the first if no pod on a node with one of the labels matches the terms, and the incoming pod itself matches.
    """
    if found.unsure:
        return StatusTemplate(Unknown, Reason.NAMESPACES_UNKNOWN, {"rule": _AFFINITY})
    if found.expected:
        return StatusTemplate(Unknown, Reason.NEIGHBOUR_EXPECTED, {"rule": _AFFINITY})
    unlisted = next((topology.unlisted for topology in topologies.values()), None)
    if unlisted is not None:
        return StatusTemplate(Unknown, Reason.NEIGHBOUR_ON_UNKNOWN_NODE, {"rule": _AFFINITY, "other": unlisted})
    own = [term.matches(incoming.namespace, incoming.labels) for term in terms]
    if False in own or any(topology.values for topology in topologies.values()):
        pods = conjunction(term.selector for term in terms)
        return StatusTemplate(Rejected, Reason.POD_AFFINITY_UNMET, {"pods": pods})
    return StatusTemplate(Unknown, Reason.NAMESPACES_UNKNOWN, {"rule": _AFFINITY}) if None in own else None


def _add_own_anti_affinity(incoming: IncomingPod, lookup: TopologyLookup, apart: TopologyStatuses) -> None:
    """Add the pods that match any term of the incoming pod, each in its topology (satisfyPodAntiAffinity)."""
    terms = parse_terms(incoming.anti_affinity, incoming.namespace, incoming.labels)
    if terms is None:
        apart.add_for_all(StatusTemplate(Rejected, Reason.SELECTOR_UNREADABLE, {"rule": _ANTI_AFFINITY}))
        return
    try:
        for term in terms:
            found = lookup.find([term.scope], term.selector, rule=_ANTI_AFFINITY)
            if isinstance(found, Unknown):
                apart.add_for_label(term.topology_key, StatusTemplate.of(found))
            else:
                pods = TermPods(found.bound, found.expected, found.unsure)
                apart.add_term(term, pods, _ANTI_AFFINITY, Reason.POD_ANTI_AFFINITY)
    except OutOfSteps:
        apart.add_for_all(StatusTemplate.of(lookup.gave_up(_ANTI_AFFINITY)))


def _add_existing_anti_affinity(incoming: IncomingPod, lookup: TopologyLookup, apart: TopologyStatuses) -> None:
    """Add the pods on nodes that have a term about the incoming pod (satisfyExistingPodsAntiAffinity)."""
    existing = lookup.pod_index.existing_anti_affinity
    try:
        lookup.budget.take(_FILED_STEPS * existing.filed(incoming.namespace, incoming.labels))
        for existing_term, certain in existing.against(incoming.namespace, incoming.labels):
            lookup.budget.take(_EXISTING_TERM_STEPS)
            apart.add_term(existing_term.term, _pods_with(existing_term, certain=certain), _EXISTING, Reason.REPELLED)
    except OutOfSteps:
        apart.add_for_all(StatusTemplate.of(lookup.gave_up(_EXISTING)))


def _add_label_keys(incoming: IncomingPod, apart: TopologyStatuses) -> None:
    """Add Unknown for a pod with label keys: the API server merges them into the selectors, or drops them.

    It drops them after admission where the feature gate MatchLabelKeysInPodAffinity is off, as by default in Kubernetes
    1.30 (pkg/api/pod/util.go, dropDisabledMatchLabelKeysFieldInPodAffinity). Then the terms are about more pods.
    """
    for which, terms in (("affinity", incoming.affinity), ("anti-affinity", incoming.anti_affinity)):
        if any(term.match_label_keys or term.mismatch_label_keys for term in terms):
            apart.add_for_all(StatusTemplate(Unknown, Reason.MATCH_LABEL_KEYS, {"which": which}))


def _pods_with(existing_term: ExistingTerm, *, certain: bool) -> TermPods:
    nodes = names(existing_term.node_counts)
    if not certain:
        return TermPods(unsure=nodes)
    return TermPods(expected=nodes) if existing_term.expected else TermPods(bound=nodes)
