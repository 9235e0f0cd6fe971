"""kube-scheduler's InterPodAffinity plugin (pkg/scheduler/framework/plugins/interpodaffinity/filtering.go).

Required pod affinity and anti-affinity, of the incoming pod and of the pods that are on nodes. Rules over
kubernetes.io/hostname are evaluated, from the pods of the node. Other topologies have pods of other nodes: a term of
the incoming pod over one of them is not evaluated. Such a term of another pod rejects the nodes that have the value of
that pod's node. Only pods on nodes count, also those that are being deleted.
Invariant: the plugin does not reject a node that passes both functions here, for these pods and nodes. Labels of
namespaces are not known, and neither is a node that no watch has shown yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.large_pod import PART_BYTES_MAX
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.matching.label_selector import Term, parse_terms
from webhook.core.scheduler.matching.pod_matcher import PodMatcher
from webhook.core.scheduler.state.existing_terms import Place
from webhook.core.scheduler.state.node_info import UNLISTED, NodeInfo
from webhook.core.scheduler.state.pod_info import PARTS_NOT_COMPARED, PodHandle
from webhook.core.scheduler.state.snapshot import Snapshot, SnapshotUnavailable

_AFFINITY: Final = "required pod affinity"
_ANTI_AFFINITY: Final = "required pod anti-affinity"
_EXISTING: Final = "the required anti-affinity of a pod that is there"

EXISTING_TERMS_MAX: Final = 1_000  # 0.4 us for each comparison: a tenth of the 5 ms that an admission may take
EXISTING_PLACES_MAX: Final = 10_000  # twice the nodes of the largest clusters; 0.2 us for the value of each


class PreFilterState(Struct, frozen=True):
    """The pod's own terms, without those with label keys."""

    affinity: Sequence[Term]
    near: PodMatcher
    anti_affinity: Sequence[tuple[Term, PodMatcher]]
    unreadable: str | None


def pre_filter(cycle: CycleState) -> Why | None:
    """Return the rule, of the pod or of another pod, that the pods of one node don't decide."""
    spec = cycle.pod.spec
    for which, terms in (("affinity", spec.required_pod_affinity), ("anti-affinity", spec.required_pod_anti_affinity)):
        for term in terms:
            if term.topology_key != HOSTNAME:
                return Reason.INTER_POD_AFFINITY.why(which=which, key=term.topology_key)
            # The API server merges the keys into the selector, or drops them after admission: Kubernetes 1.30 does so
            # by default (pkg/api/pod/util.go, dropDisabledMatchLabelKeysFieldInPodAffinity).
            if term.has_label_keys:
                return Reason.MATCH_LABEL_KEYS.why(which=which)
    snapshot = cycle.snapshot
    if not isinstance(snapshot, SnapshotUnavailable) and snapshot.scheduler_cache.not_compared:
        return Reason.POD_NOT_COMPARED.why(which="some node", most=PART_BYTES_MAX)
    wide = cycle.state(_wide_terms)
    return wide if isinstance(wide, Why) else None


def filter_node(cycle: CycleState, node: NodeInfo) -> Why | None:
    """Return why the pod may not join the pods on the node, or why that is not known."""
    if any(pod.anti_affinity is PARTS_NOT_COMPARED for pod in node.pods_with_anti_affinity):
        return Reason.POD_NOT_COMPARED.why(which=f"node {node.name}", most=PART_BYTES_MAX)
    state = cycle.state(_read)
    if state.unreadable:
        return Reason.SELECTOR_UNREADABLE.why(rule=state.unreadable)
    return next(filter(None, _reasons(cycle, state, node)), None)


def _read(cycle: CycleState) -> PreFilterState:
    own = (cycle.pod.spec.required_pod_affinity, cycle.pod.spec.required_pod_anti_affinity)
    plain = [[term for term in terms if not term.has_label_keys] for terms in own]
    affinity, anti_affinity = (parse_terms(terms, cycle.namespace) for terms in plain)
    return PreFilterState(
        affinity=affinity or (),
        near=PodMatcher(affinity or ()),
        anti_affinity=[(term, PodMatcher((term,))) for term in anti_affinity or ()],
        unreadable=_AFFINITY if affinity is None else _ANTI_AFFINITY if anti_affinity is None else None,
    )


_Values = Mapping[str | None, bool]
"""The values of a label on the nodes of pods, with whether a pod is bound there. None: a node that is not known."""


def _wide_terms(cycle: CycleState) -> Sequence[tuple[Term, _Values]] | Why:
    """Return the terms over other topologies that are about the pod, or can be; or why they are not compared."""
    snapshot = cycle.snapshot
    if isinstance(snapshot, SnapshotUnavailable):
        return ()
    existing_terms = snapshot.scheduler_cache.existing_terms
    count = existing_terms.count(cycle.namespace)
    if count > EXISTING_TERMS_MAX:
        return Reason.TOO_MANY_EXISTING_TERMS.why(count=count, most=EXISTING_TERMS_MAX)
    found = list(existing_terms.about(cycle.namespace, cycle.pod.metadata.labels or {}))
    count = sum(len(places) for _, places in found)
    if count > EXISTING_PLACES_MAX:
        return Reason.TOO_MANY_EXISTING_TERMS.why(count=count, most=EXISTING_PLACES_MAX)
    return [(term, _values(term.topology_key, places, snapshot)) for term, places in found]


def _values(key: str, places: Collection[Place], snapshot: Snapshot) -> _Values:
    """Return the values of a label at these places. A node without the label is in no topology."""
    values: dict[str | None, bool] = {}
    for name, bound in places:
        node = snapshot.node(name)
        labels = node.metadata.labels or {}
        if node is UNLISTED or key in labels:
            value = labels.get(key)
            values[value] = bound or values.get(value, False)
    return values


def _reasons(cycle: CycleState, state: PreFilterState, node: NodeInfo) -> Iterator[Why | None]:
    labels, snapshot = node.labels, cycle.snapshot
    hostname = labels.get(HOSTNAME)
    hostnames = {} if isinstance(snapshot, SnapshotUnavailable) else snapshot.hostnames
    if hostname is not None and hostnames.get(hostname, 0) > 1:
        yield Reason.HOSTNAME_NOT_UNIQUE.why(node=node.name, key=HOSTNAME, value=hostname)
    elif state.affinity:
        yield _affinity(state, node, labels)
    for term, matcher in state.anti_affinity:
        if term.topology_key in labels:
            yield _anti_affinity(term, matcher, node)
    yield _existing(cycle, node, labels)
    yield _existing_wide(cycle, node, labels)


def _affinity(state: PreFilterState, node: NodeInfo, labels: Mapping[str, str]) -> Why | None:
    """Compare the pods of the node with all terms (satisfyPodAffinity).

    A term over another topology can be met by pods of other nodes. Whether the incoming pod is the first of its kind,
    which needs no other, depends on all pods of the cluster.
    """
    keys = {term.topology_key for term in state.affinity}
    missing = min(keys - labels.keys(), default=None)
    if missing is not None:
        return Reason.TOPOLOGY_LABEL_MISSING.why(node=node.name, rule=_AFFINITY, key=missing)
    present = _present(state.near, node.pods)
    if present is True or HOSTNAME not in keys:
        return None
    if present is not False:
        return present.why(node=node.name, rule=_AFFINITY)
    return Reason.POD_AFFINITY_UNMET.why(node=node.name, key=HOSTNAME, pods=state.near.selector)


def _anti_affinity(term: Term, matcher: PodMatcher, node: NodeInfo) -> Why | None:
    """Look for a pod on the node that the term excludes: it is in the same topology (satisfyPodAntiAffinity)."""
    present = _present(matcher, node.pods)
    if present is True:
        return Reason.POD_ANTI_AFFINITY.why(node=node.name, key=term.topology_key, pods=term)
    return present.why(node=node.name, rule=_ANTI_AFFINITY) if present else None


def _present(matcher: PodMatcher, pods: Sequence[PodHandle]) -> bool | Reason:
    """Return whether a pod that matches is on the node; or why that is not known."""
    unknown: bool | Reason = False
    for pod in pods:
        matches = matcher.matches(pod.group, pod.values)
        if matches is not False:
            if matches and pod.on.bound:
                return True
            unknown = unknown or (Reason.DEPENDS_ON_UNSCHEDULED_POD if matches else Reason.NAMESPACES_UNKNOWN)
    return unknown


def _existing(cycle: CycleState, node: NodeInfo, labels: Mapping[str, str]) -> Why | None:
    """Compare the incoming pod with the terms of the node's pods (satisfyExistingPodsAntiAffinity)."""
    terms = [(pod, term) for pod in node.pods_with_anti_affinity for term in pod.anti_affinity.terms]
    if len(terms) > EXISTING_TERMS_MAX:
        return Reason.TOO_MANY_EXISTING_TERMS.why(count=len(terms), most=EXISTING_TERMS_MAX)
    own = cycle.pod.metadata.labels or {}
    for pod, term in terms:
        if term.topology_key in labels and term.matches(cycle.namespace, own) is not False:
            return _why_excluded(term, cycle, node, bound=pod.on.bound)
    return None


def _why_excluded(term: Term, cycle: CycleState, node: NodeInfo, *, bound: bool) -> Why:
    """Return what a term that is about the pod, or can be, has against a node in the topology of its own pod."""
    if term.matches(cycle.namespace, cycle.pod.metadata.labels or {}) is None:
        return Reason.NAMESPACES_UNKNOWN.why(node=node.name, rule=_EXISTING)
    if not bound:
        return Reason.DEPENDS_ON_UNSCHEDULED_POD.why(node=node.name, rule=_EXISTING)
    return Reason.EXCLUDED_BY_POD.why(node=node.name, key=term.topology_key, pods=term)


def _existing_wide(cycle: CycleState, node: NodeInfo, labels: Mapping[str, str]) -> Why | None:
    """Compare the node with the topologies of the terms of pods on any node (satisfyExistingPodsAntiAffinity)."""
    wide = cycle.state(_wide_terms)
    if isinstance(wide, Why):
        return wide
    for term, values in wide:
        key, value = term.topology_key, labels.get(term.topology_key)
        if value is None:
            continue
        if value in values:
            return _why_excluded(term, cycle, node, bound=values[value])
        if None in values:
            return Reason.MAY_BE_EXCLUDED_BY_POD.why(node=node.name, key=key, pods=term)
    return None
