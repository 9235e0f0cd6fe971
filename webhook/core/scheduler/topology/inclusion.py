"""Which nodes does a topology spread constraint see? Its node inclusion policies, asked of thousands of nodes.

plugins/podtopologyspread/common.go, matchNodeInclusionPolicies, and filtering.go: a node has the key of every
constraint. Whether node affinity admits a node depends on the few labels that it names: it is asked once of each
combination of their values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from webhook.core.scheduler.plugins.node_affinity import selector_admits
from webhook.core.scheduler.plugins.taint_toleration import tolerates
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.topology.search import Search

_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_INCLUDED_STEPS: Final = 2
_EXPRESSION_STEPS: Final = 15
_TAINT_STEPS: Final = 5


class Inclusion:
    """The nodes that one constraint of a pod sees."""

    def __init__(
        self,
        incoming: IncomingPod,
        keys: Collection[str],
        search: Search,
        *,
        honors_affinity: bool,
        honors_taints: bool,
    ) -> None:
        """Args: `keys`: those of all of the pod's constraints."""
        self._incoming, self._keys, self._search = incoming, keys, search
        self._honors_affinity, self._honors_taints = honors_affinity, honors_taints
        affinity = incoming.node_affinity
        terms = (affinity.node_selector_terms or ()) if affinity else ()
        read = {each.key or "" for term in terms for each in term.match_expressions or ()}
        self._read = tuple(sorted(read | incoming.node_selector.keys()))
        self._by_name = any(term.match_fields for term in terms)
        values = sum(len(each.values or ()) for term in terms for each in term.match_expressions or ())
        self._affinity_steps = _EXPRESSION_STEPS * (1 + len(terms) + len(self._read)) + values
        self._admitted: dict[object, bool] = {}

    def among(self, names: Collection[str]) -> Collection[str]:
        """Those of these nodes that the constraint sees.

        Raises:
            OutOfSteps: they are too many, or the policies are too long to be asked of so many.
        """
        # First what stays for the next admission, so that no one's steps are spent before that is there.
        columns = [self._search.values(key) for key in self._keys]
        read = self._read if self._honors_affinity and not self._by_name else ()
        combinations = self._search.combinations(read) if read else {}
        self._search.budget.take(_INCLUDED_STEPS * len(names))
        for values in columns:
            names = [name for name in names if name in values]
        if self._honors_affinity:
            names = self._admitting(names, combinations)
        return [name for name in names if not self._repels(name)] if self._honors_taints else names

    def _admitting(self, names: Collection[str], combinations: Mapping[str, object]) -> Collection[str]:
        """The pod's nodeSelector and required node affinity."""
        if self._by_name:
            return [name for name in names if self._admits(name, name)]
        examples = dict(zip(map(combinations.get, names), names, strict=True))
        admitted = {values for values, name in examples.items() if self._admits(values, name)}
        return names if len(admitted) == len(examples) else [n for n in names if combinations.get(n) in admitted]

    def _admits(self, values: object, name: str) -> bool:
        """Whether they admit a node; the same for every node with these values of the labels that they read."""
        admitted = self._admitted.get(values)
        if admitted is None:
            self._search.budget.take(self._affinity_steps)
            labels = self._search.nodes[name].metadata.labels or {}
            admitted = self._incoming.node_selector.items() <= labels.items()
            admitted = admitted and selector_admits(self._incoming.node_affinity, labels, name)
            self._admitted[values] = admitted
        return admitted

    def _repels(self, name: str) -> bool:
        spec, tolerations = self._search.nodes[name].spec, self._incoming.tolerations
        taints = (spec.taints if spec else None) or ()
        self._search.budget.take(_TAINT_STEPS * (1 + len(taints) * (1 + len(tolerations))))
        return any(each.effect in _REPELLING_EFFECTS and not tolerates(tolerations, each) for each in taints)
