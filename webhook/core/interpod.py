"""Would kube-scheduler's InterPodAffinity filter admit this pod on that node? Required affinity, in both directions.

plugins/interpodaffinity/filtering.go. Only pods that are on nodes count, and those that are terminating do.
Invariant: what is Allowed here that filter admits, for these pods and nodes. Pods that the scheduler has nominated for
a node (`status.nominatedNodeName`) are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.neighbours import LOOKED_AT_MAX, Found, Neighbours
from webhook.core.newcomer import Newcomer
from webhook.core.objects import Node
from webhook.core.reasons import Reason
from webhook.core.rulings import ALLOWED, Refused, Ruling, Undecided, overall
from webhook.core.selectors import Term, conjunction, parse_terms
from webhook.core.tally import Tally, as_dict, entries

_AFFINITY: Final = "required pod affinity"
_ANTI_AFFINITY: Final = "required pod anti-affinity"
_EXISTING: Final = "the required anti-affinity of a pod that is there"


class _Place(Struct, frozen=True):
    """The candidate node, and what is known around it."""

    node: str
    labels: Mapping[str, str]
    nodes: Mapping[str, Node]
    neighbours: Neighbours

    def is_near(self, name: str, key: str) -> bool | None:
        """Whether a node has the candidate's value of this label; None where no node of this name is known."""
        node = self.nodes.get(name)
        if node is None:
            return None
        return (node.metadata.labels or {}).get(key) == self.labels[key]

    def any_near(self, names: Iterable[str], key: str) -> bool:
        """Whether one of these nodes, of those that are known, has the candidate's value."""
        return any(self.is_near(name, key) for name in names)

    def may_be_near(self, names: Iterable[str], key: str) -> bool:
        """Whether one of these nodes has the candidate's value, or is not known."""
        return any(self.is_near(name, key) is not False for name in names)

    def refused(self, cause: Reason, **names: object) -> Refused:
        return Refused(cause, {"node": self.node, **names})

    def undecided(self, cause: Reason, rule: str, **names: object) -> Undecided:
        return Undecided(cause, {"node": self.node, "rule": rule, **names})

    def strangers(self, names: Iterable[str], rule: str) -> Undecided | None:
        """A pod is on a node that is not known: gone, or so new that it is not seen yet."""
        other = next((name for name in names if name not in self.nodes), None)
        return None if other is None else self.undecided(Reason.NEIGHBOUR_ON_UNKNOWN_NODE, rule, other=other)


def judge(newcomer: Newcomer, node: Node, nodes: Mapping[str, Node], neighbours: Neighbours) -> Ruling:
    """Whether the pod may join the pods that are on and around `node`.

    Args:
        nodes: every node of the cluster by its name.
    """
    place = _Place(node.metadata.name or "", node.metadata.labels or {}, nodes, neighbours)
    return overall(_rulings(newcomer, place))


def _rulings(newcomer: Newcomer, place: _Place) -> Iterator[Ruling]:
    yield _affinity(newcomer, place)
    yield from _anti_affinity(newcomer, place)
    yield from _existing(newcomer, place)


def _affinity(newcomer: Newcomer, place: _Place) -> Ruling:
    """satisfyPodAffinity: near pods that match every term, in the topology of each."""
    terms = parse_terms(newcomer.affinity, newcomer.namespace, newcomer.labels)
    if terms is None:
        return place.refused(Reason.SELECTOR_UNREADABLE, rule=_AFFINITY)
    keys = sorted({term.topology_key for term in terms})
    missing = next((key for key in keys if key not in place.labels), None)
    if missing is not None:
        return place.refused(Reason.TOPOLOGY_LABEL_MISSING, rule=_AFFINITY, key=missing)
    wanted = conjunction(term.selector for term in terms)
    found = place.neighbours.find([term.scope for term in terms], wanted, rule=_AFFINITY) if terms else Found()
    if isinstance(found, Undecided):
        return found
    unmet = next((key for key in keys if not place.any_near(found.there, key)), None)
    if unmet is None:
        return ALLOWED
    if found.unsure:
        return place.undecided(Reason.NAMESPACES_UNKNOWN, _AFFINITY)
    if found.expected:
        return place.undecided(Reason.NEIGHBOUR_EXPECTED, _AFFINITY)
    stranger = place.strangers(found.there, _AFFINITY)
    if stranger is not None:
        return stranger
    first = _is_first_of_its_kind(newcomer, terms, keys, found, place)
    if first is None:
        return place.undecided(Reason.NAMESPACES_UNKNOWN, _AFFINITY)
    return ALLOWED if first else place.refused(Reason.POD_AFFINITY_UNMET, key=unmet, pods=wanted)


def _is_first_of_its_kind(
    newcomer: Newcomer, terms: Sequence[Term], keys: Sequence[str], found: Found, place: _Place
) -> bool | None:
    """Whether nothing matches the terms yet, on any node with one of the labels, and the pod itself will."""
    for name in found.there:
        labels = place.nodes[name].metadata.labels or {}
        if any(key in labels for key in keys):
            return False
    own = [term.matches(newcomer.namespace, newcomer.labels) for term in terms]
    if False in own:
        return False
    return None if None in own else True


def _anti_affinity(newcomer: Newcomer, place: _Place) -> Iterator[Ruling]:
    """satisfyPodAntiAffinity: away from pods that match any term, each in its topology."""
    terms = parse_terms(newcomer.anti_affinity, newcomer.namespace, newcomer.labels)
    if terms is None:
        yield place.refused(Reason.SELECTOR_UNREADABLE, rule=_ANTI_AFFINITY)
    for term in terms or ():
        if term.topology_key in place.labels:
            found = place.neighbours.find([term.scope], term.selector, rule=_ANTI_AFFINITY)
            if not isinstance(found, Undecided):
                yield _apart(term, found, place, Reason.POD_ANTI_AFFINITY, _ANTI_AFFINITY)
            else:
                yield found


def _existing(newcomer: Newcomer, place: _Place) -> Iterator[Ruling]:
    """satisfyExistingPodsAntiAffinity: away from pods that have a term against such a one."""
    looked_at = 0
    for repulsion, certain in place.neighbours.repulsions.against(newcomer.namespace, newcomer.labels):
        tally = repulsion.tally
        if tally is None or repulsion.term.topology_key not in place.labels:
            continue
        looked_at += entries(tally)
        if looked_at > LOOKED_AT_MAX:
            yield place.undecided(Reason.TOO_MANY_NEIGHBOURS, _EXISTING, most=LOOKED_AT_MAX)
            return
        found = _found(tally, certain=certain, expected=repulsion.expected)
        yield _apart(repulsion.term, found, place, Reason.REPELLED, _EXISTING)


def _found(tally: Tally, *, certain: bool, expected: bool) -> Found:
    nodes = as_dict(tally)
    if not certain:
        return Found(unsure=nodes)
    return Found(expected=nodes) if expected else Found(there=nodes)


def _apart(term: Term, found: Found, place: _Place, cause: Reason, rule: str) -> Ruling:
    """Whether none of the pods found is in the candidate's topology."""
    key = term.topology_key
    if place.node in found.there or place.any_near(found.there, key):
        return place.refused(cause, key=key, pods=term)
    if place.may_be_near(found.unsure, key):
        return place.undecided(Reason.NAMESPACES_UNKNOWN, rule)
    if place.may_be_near(found.expected, key):
        return place.undecided(Reason.NEIGHBOUR_EXPECTED, rule)
    return place.strangers(found.there, rule) or ALLOWED
