"""Would kube-scheduler's InterPodAffinity filter admit this pod on that node? Required affinity, in both directions.

plugins/interpodaffinity/filtering.go, and as there in two parts: `pre_filter` looks at pods and nodes once for a pod,
`filter_node` then asks of each node which values its topology labels have. Only pods that are on nodes count, and those
that are terminating do.
Invariant: what is Allowed here that filter admits, for these pods and nodes. Pods that the scheduler has nominated for
a node (`status.nominatedNodeName`) are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.node import Node
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import OutOfSteps
from webhook.core.scheduler.state.existing_anti_affinity import ExistingTerm
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.label_selector import Term, conjunction, parse_terms
from webhook.core.scheduler.state.node_counts import names
from webhook.core.scheduler.state.pod_index import Found
from webhook.core.scheduler.status import PASSED, Rejected, Status, Told, Unknown, overall
from webhook.core.scheduler.topology.keep_apart import KeepApart, Places
from webhook.core.scheduler.topology.search import Search, Topology

_AFFINITY: Final = "required pod affinity"
_ANTI_AFFINITY: Final = "required pod anti-affinity"
_EXISTING: Final = "the required anti-affinity of a pod that is there"

_FILED_STEPS: Final = 15  # for `Term.matches`: 1 us
_REPULSION_STEPS: Final = 45  # for `KeepApart.put`, its nodes apart: 3 us


class _Near(Struct, frozen=True):
    """What the pod's required affinity found.

    Attributes:
        values: of each topology label that a term names, those of the nodes on which matching pods are.
        settled: the ruling for every node that has these labels.
        far: the ruling for a node that lacks a value; None where that does not matter.
    """

    values: Mapping[str, Collection[str]] = {}
    settled: Told | None = None
    far: Told | None = None

    def ruling(self, node: str, labels: Mapping[str, str]) -> Status:
        """SatisfyPodAffinity: near pods that match every term, in the topology of each."""
        for key in self.values:
            if key not in labels:
                return Rejected(Reason.TOPOLOGY_LABEL_MISSING, {"node": node, "rule": _AFFINITY, "key": key})
        if self.settled:
            return self.settled.of(node)
        unmet = next((key for key, values in self.values.items() if labels[key] not in values), None)
        return PASSED if unmet is None or self.far is None else self.far.of(node, key=unmet)


class PreFilterState(Struct, frozen=True):
    """What is known of a pod before any node is looked at."""

    near: _Near
    apart: KeepApart


def pre_filter(incoming: IncomingPod, search: Search) -> PreFilterState:
    """Look at the pods that the incoming pod's terms are about, and at the terms that are about it."""
    near = _near(incoming, search)
    apart = KeepApart(search)
    _anti_affinity(incoming, search, apart)
    _existing(incoming, search, apart)
    return PreFilterState(near, apart)


def filter_node(state: PreFilterState, node: Node) -> Status:
    """Whether the pod may join the pods that are on and around `node`, one of those that were searched."""
    name, labels = node.metadata.name or "", node.metadata.labels or {}
    near = state.near.ruling(name, labels)
    return near if isinstance(near, Rejected) else overall((near, state.apart.ruling(name, labels)))


def _near(incoming: IncomingPod, search: Search) -> _Near:
    terms = parse_terms(incoming.affinity, incoming.namespace, incoming.labels)
    if terms is None:
        return _Near(settled=Told(Rejected, Reason.SELECTOR_UNREADABLE, {"rule": _AFFINITY}))
    if not terms:
        return _Near()
    keys = sorted({term.topology_key for term in terms})
    wanted = conjunction(term.selector for term in terms)
    found = search.find([term.scope for term in terms], wanted, rule=_AFFINITY)
    if isinstance(found, Unknown):
        return _Near(dict.fromkeys(keys, frozenset()), Told.like(found))
    try:
        there = {key: search.topology(found.bound, key) for key in keys}
    except OutOfSteps:
        return _Near(dict.fromkeys(keys, frozenset()), Told.like(search.gave_up(_AFFINITY)))
    values = {key: topology.values for key, topology in there.items()}
    return _Near(values, far=_far(incoming, terms, found, there))


def _far(incoming: IncomingPod, terms: Sequence[Term], found: Found, there: Mapping[str, Topology]) -> Told | None:
    """What is to be said of a node that is near to none of them; None where the pod is the first of its kind.

    So it is where nothing matches the terms yet, on any node with one of the labels, and the pod itself will.
    """
    if found.unsure:
        return Told(Unknown, Reason.NAMESPACES_UNKNOWN, {"rule": _AFFINITY})
    if found.expected:
        return Told(Unknown, Reason.NEIGHBOUR_EXPECTED, {"rule": _AFFINITY})
    stranger = next((topology.stranger for topology in there.values()), None)
    if stranger is not None:
        return Told(Unknown, Reason.NEIGHBOUR_ON_UNKNOWN_NODE, {"rule": _AFFINITY, "other": stranger})
    own = [term.matches(incoming.namespace, incoming.labels) for term in terms]
    if False in own or any(topology.values for topology in there.values()):
        return Told(Rejected, Reason.POD_AFFINITY_UNMET, {"pods": conjunction(term.selector for term in terms)})
    return Told(Unknown, Reason.NAMESPACES_UNKNOWN, {"rule": _AFFINITY}) if None in own else None


def _anti_affinity(incoming: IncomingPod, search: Search, apart: KeepApart) -> None:
    """SatisfyPodAntiAffinity: away from pods that match any term, each in its topology."""
    terms = parse_terms(incoming.anti_affinity, incoming.namespace, incoming.labels)
    if terms is None:
        apart.put_everywhere(Told(Rejected, Reason.SELECTOR_UNREADABLE, {"rule": _ANTI_AFFINITY}))
        return
    try:
        for term in terms:
            found = search.find([term.scope], term.selector, rule=_ANTI_AFFINITY)
            if isinstance(found, Unknown):
                apart.put_on_all(term.topology_key, Told.like(found))
            else:
                places = Places(found.bound, found.expected, found.unsure)
                apart.put(term, places, _ANTI_AFFINITY, Reason.POD_ANTI_AFFINITY)
    except OutOfSteps:
        apart.put_everywhere(Told.like(search.gave_up(_ANTI_AFFINITY)))


def _existing(incoming: IncomingPod, search: Search, apart: KeepApart) -> None:
    """SatisfyExistingPodsAntiAffinity: away from pods that have a term against such a one."""
    existing_anti_affinity = search.pod_index.existing_anti_affinity
    try:
        search.budget.take(_FILED_STEPS * existing_anti_affinity.filed(incoming.namespace, incoming.labels))
        for repulsion, certain in existing_anti_affinity.against(incoming.namespace, incoming.labels):
            search.budget.take(_REPULSION_STEPS)
            apart.put(repulsion.term, _places(repulsion, certain=certain), _EXISTING, Reason.REPELLED)
    except OutOfSteps:
        apart.put_everywhere(Told.like(search.gave_up(_EXISTING)))


def _places(repulsion: ExistingTerm, *, certain: bool) -> Places:
    nodes = names(repulsion.node_counts)
    if not certain:
        return Places(unsure=nodes)
    return Places(expected=nodes) if repulsion.expected else Places(bound=nodes)
