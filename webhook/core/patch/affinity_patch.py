"""The affinity of a pod as JSON, with a Pin written into it, and without it again. Nothing here decides.

Terms are appended, and a required term gets one requirement more. Everything else stays, also fields that the webhook
does not know. The AppliedPatch names what was added, so that `reverted` can take it out again when the API server asks
a second time. If others changed the pod meanwhile, their changes stay. Nothing here raises, or changes its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from webhook.core.api.affinity import PREFERRED, REQUIRED, pin
from webhook.core.api.longhorn import near
from webhook.core.decision import Pin, Steer, WeightedNode
from webhook.core.patch.applied_patch import AddedPreferences, AppliedPatch

NODE_AFFINITY: Final = "nodeAffinity"
POD_AFFINITY: Final = "podAffinity"
_TERMS: Final = "nodeSelectorTerms"
_FIELDS: Final = "matchFields"
_EXPRESSIONS: Final = "matchExpressions"
_COPIES: Final = 10  # of a preference: ten copies beside one foreign term have 10/11 of the weight; more add little

_Term = Mapping[str, Any]
TermOf = Callable[[str, int], _Term]
"""Returns the preferred term for a node and a weight."""


def pinned(affinity: Any, decision: Pin) -> tuple[Any, AppliedPatch]:
    """Return the affinity with the terms of the decision, and what was added.

    The affinity carries nothing of the webhook yet.
    """
    nodes, preferred, copies = decision.required or decision.shortlist, decision.preferred, 1
    near_nodes: Sequence[WeightedNode] = ()
    if isinstance(decision, Steer):
        preferred, near_nodes, copies = preferred if decision.by_node else (), decision.near, _COPIES
    after = dict(affinity or {})
    required, narrowed = _narrowed(_field(after, NODE_AFFINITY, REQUIRED), nodes)
    by_node, added = _preferring(_field(after, NODE_AFFINITY, PREFERRED), preferred, preference, copies)
    by_pod, added_near = _preferring(_field(after, POD_AFFINITY, PREFERRED), near_nodes, near, 1)
    if narrowed or added:
        after = _with(after, NODE_AFFINITY, {REQUIRED: required, PREFERRED: by_node})
    if added_near:
        after = _with(after, POD_AFFINITY, {PREFERRED: by_pod})
    return after, AppliedPatch(
        nodes=nodes if narrowed else (), narrowed=narrowed, preferred=added, near_nodes=added_near
    )


def reverted(affinity: Any, applied: AppliedPatch) -> Any:
    """Return the affinity without what the record names, and without objects that are empty because of that."""
    if not affinity or not applied.wrote_terms:
        return affinity
    by_node = _without(_field(affinity, NODE_AFFINITY, PREFERRED), applied.preferred, preference)
    by_pod = _without(_field(affinity, POD_AFFINITY, PREFERRED), applied.near_nodes, near)
    required = _widened(_field(affinity, NODE_AFFINITY, REQUIRED), applied)
    after = _with(affinity, NODE_AFFINITY, {REQUIRED: required, PREFERRED: by_node})
    after = _with(after, POD_AFFINITY, {PREFERRED: by_pod})
    return {kind: own for kind, own in after.items() if own != {} or affinity.get(kind) == {}} or None


def preference(node: str, weight: int) -> _Term:
    """Return the preferred node affinity term that only this node meets."""
    return {"weight": weight, "preference": {_FIELDS: [_requirement(node)]}}


def _requirement(node: str) -> _Term:
    term: _Term = msgspec.to_builtins(pin(node))
    return term


def _field(affinity: _Term, kind: str, field: str) -> Any:
    return (affinity.get(kind) or {}).get(field)


def _with(affinity: _Term, kind: str, fields: _Term) -> dict[str, Any]:
    """Return the affinity with these fields of one kind. A field without a value is left out, if it had one before."""
    own = affinity.get(kind) or {}
    changed = {name: value for name, value in fields.items() if value != own.get(name)}
    others = {name: value for name, value in own.items() if name not in changed}
    return {**affinity, kind: {**others, **{name: value for name, value in changed.items() if value}}}


def _narrowed(selector: Any, nodes: Sequence[str]) -> tuple[Any, int]:
    """AND the nodes (any of them) into every term that can match; return how many terms name one then.

    The terms are ORed, and a requirement names one node: with several nodes each term is copied once for each further
    node. An empty term matches nothing and stays empty. No term has a requirement on a field yet
    (webhook.core.scheduler.cycle_state).
    """
    if selector is None or not nodes:
        return {_TERMS: [_naming({}, node) for node in nodes]} if nodes else selector, len(nodes)
    terms = selector.get(_TERMS) or []
    usable = [term for term in terms if not _is_empty(term)]
    first = [term if _is_empty(term) else _naming(term, nodes[0]) for term in terms]
    copies = [_naming(term, node) for term in usable for node in nodes[1:]]
    return {**selector, _TERMS: [*first, *copies]}, len(usable) * len(nodes)


def _naming(term: _Term, node: str) -> _Term:
    return {**term, _FIELDS: [*(term.get(_FIELDS) or ()), _requirement(node)]}


def _is_empty(term: _Term) -> bool:
    """Whether the scheduler skips this term (component-helpers nodeaffinity.go, isEmptyNodeSelectorTerm)."""
    return not term.get(_EXPRESSIONS) and not term.get(_FIELDS)


def _widened(selector: Any, applied: AppliedPatch) -> Any:
    """Take the webhook's requirement out of each term, and remove copies for further nodes, and what is then empty.

    If more terms name a node of the record than the webhook wrote, somebody else wrote one of them, too. Which one is
    not known. Then all stay, and the pod has terms by a field of its own. A selector of which no term is left goes,
    because it would match no node.
    """
    terms = (selector or {}).get(_TERMS) or []
    wrote = [_requirement(node) for node in applied.nodes]
    found = [
        (wrote.index(requirement), index, place)
        for index, term in enumerate(terms)
        for place, requirement in enumerate(term.get(_FIELDS) or ())
        if requirement in wrote
    ]
    if not found or len(found) > applied.narrowed:
        return selector
    left = dict(enumerate(terms))
    own: list[_Term] = []
    for nth_node, index, place in sorted({each[1]: each for each in found}.values()):
        fields = [each for at, each in enumerate(terms[index][_FIELDS]) if at != place]
        others = {name: value for name, value in terms[index].items() if name != _FIELDS}
        term = {**others, _FIELDS: fields} if fields else others
        if _is_empty(term) or (nth_node and term in own):
            del left[index]
        else:
            left[index] = term
            own.append(term)
    return {**selector, _TERMS: list(left.values())} if left else None


def _preferring(
    existing: Sequence[Any] | None, nodes: Sequence[WeightedNode], term_of: TermOf, copies: int
) -> tuple[Sequence[Any], AddedPreferences]:
    """Append the preferences that the pod does not have yet; `copies` of each if the pod has terms of others.

    The scheduler adds the weights of all terms that match a node, and scales the sum to the best node's. Longhorn
    writes a term against a delinquent node, which matches every node except that one. Beside such a term a single
    preference has only half its weight.
    """
    existing = existing or []
    terms = [term_of(each.node, each.weight) for each in nodes]
    present = [existing.count(term) for term in terms]
    wanted = copies if sum(present) < len(existing) else 1
    counts = [max(0, wanted - had) for had in present]
    added = zip(nodes, counts, strict=True)
    return (
        [*existing, *(term for term, count in zip(terms, counts, strict=True) for _ in range(count))],
        tuple((weighted.node, weighted.weight, count) for weighted, count in added if count),
    )


def _without(existing: Sequence[Any] | None, added: AddedPreferences, term_of: TermOf) -> Sequence[Any]:
    """Return the preferences without the last ones of those that were added."""
    left = [*reversed(existing or ())]
    for node, weight, copies in added:
        term = term_of(node, weight)
        for _ in range(min(copies, left.count(term))):
            left.remove(term)
    return left[::-1]
