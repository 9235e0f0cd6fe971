"""NodeInclusion: which nodes a topology spread constraint counts, by its node inclusion policies.

Upstream: plugins/podtopologyspread/common.go, matchNodeInclusionPolicies, and filtering.go: a node has the key of every
constraint. A constraint asks this about thousands of nodes. Node affinity depends only on the few labels that it names,
so that it is evaluated once for each combination of their values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from webhook.core.scheduler.matching.node_selector import matches_node_selector
from webhook.core.scheduler.matching.toleration import find_untolerated
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.topology.topology_lookup import TopologyLookup

_INCLUDED_STEPS: Final = 2
_EXPRESSION_STEPS: Final = 15
_TAINT_STEPS: Final = 5


class NodeInclusion:
    """The nodes that one constraint of a pod counts."""

    def __init__(
        self,
        incoming: IncomingPod,
        keys: Collection[str],
        lookup: TopologyLookup,
        *,
        honors_affinity: bool,
        honors_taints: bool,
    ) -> None:
        """Args: `keys`: the topology keys of all of the pod's constraints."""
        self._incoming, self._keys, self._lookup = incoming, keys, lookup
        self._honors_affinity, self._honors_taints = honors_affinity, honors_taints
        affinity = incoming.node_affinity
        terms = (affinity.node_selector_terms or ()) if affinity else ()
        read = {each.key or "" for term in terms for each in term.match_expressions or ()}
        self._read = tuple(sorted(read | incoming.node_selector.keys()))
        self._by_name = any(term.match_fields for term in terms)
        values = sum(len(each.values or ()) for term in terms for each in term.match_expressions or ())
        self._affinity_steps = _EXPRESSION_STEPS * (1 + len(terms) + len(self._read)) + values
        self._matched: dict[object, bool] = {}

    def among(self, names: Collection[str]) -> Collection[str]:
        """Return those of these nodes that the constraint counts.

        Raises:
            OutOfSteps: there are too many nodes, or the policies are too long to be evaluated for so many.
        """
        # The columns first: they stay for the next admission, so that the steps are not lost if the budget ends here.
        columns = [self._lookup.values(key) for key in self._keys]
        read = self._read if self._honors_affinity and not self._by_name else ()
        combinations = self._lookup.combinations(read) if read else {}
        self._lookup.budget.take(_INCLUDED_STEPS * len(names))
        for values in columns:
            names = [name for name in names if name in values]
        if self._honors_affinity:
            names = self._matching(names, combinations)
        return [name for name in names if not self._is_tainted(name)] if self._honors_taints else names

    def _matching(self, names: Collection[str], combinations: Mapping[str, object]) -> Collection[str]:
        """Return the nodes that the pod's nodeSelector and its required node affinity match."""
        if self._by_name:
            return [name for name in names if self._matches(name, name)]
        examples = dict(zip(map(combinations.get, names), names, strict=True))
        matched = {values for values, name in examples.items() if self._matches(values, name)}
        return names if len(matched) == len(examples) else [n for n in names if combinations.get(n) in matched]

    def _matches(self, values: object, name: str) -> bool:
        """Whether both match a node; equal for every node with these values of the labels that they read."""
        matched = self._matched.get(values)
        if matched is None:
            self._lookup.budget.take(self._affinity_steps)
            labels = self._lookup.nodes[name].metadata.labels or {}
            matched = self._incoming.node_selector.items() <= labels.items()
            matched = matched and matches_node_selector(self._incoming.node_affinity, labels, name)
            self._matched[values] = matched
        return matched

    def _is_tainted(self, name: str) -> bool:
        spec, tolerations = self._lookup.nodes[name].spec, self._incoming.tolerations
        taints = (spec.taints if spec else None) or ()
        self._lookup.budget.take(_TAINT_STEPS * (1 + len(taints) * (1 + len(tolerations))))
        return find_untolerated(taints, tolerations) is not None
