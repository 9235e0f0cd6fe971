"""Small clusters whose pods have anti-affinity, made from a source of chance: the same for the same seed."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from support.models.scheduler_model import REQUIRED, Situation
from support.objects import builders

Object = dict[str, Any]

_HOST: Final = "kubernetes.io/hostname"
_NODES: Final = tuple(f"n{index}" for index in range(5))
_ROLES: Final = ("db", "web", "cache")
_NAMESPACES: Final = {"vms": {"team": "a"}, "apps": {"team": "b"}, "spare": {}}
_EXPRESSIONS: Final = (
    {"key": "role", "operator": "In", "values": ["db", "web"]},
    {"key": "role", "operator": "NotIn", "values": ["db"]},
    {"key": "tier", "operator": "In", "values": ["gold"]},
    {"key": "tier", "operator": "NotIn", "values": ["gold"]},
    {"key": "tier", "operator": "Exists"},
    {"key": "tier", "operator": "DoesNotExist"},
)
_NAMESPACE_SELECTORS: Final = (
    {},
    {"matchLabels": {"team": "a"}},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
)


class Maker:
    """Makes situations."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def odds(self, percent: int) -> bool:
        """True so often."""
        return self.random.randrange(100) < percent

    def situation(self) -> Situation:
        """Return a situation with so many pods on its nodes that terms often meet the incoming pod."""
        return Situation(
            nodes=[self._node(index, name) for index, name in enumerate(_NODES)],
            pods=[self.neighbour() for _ in range(self.random.choice((0, 5, 20, 30)))],
            namespaces=_NAMESPACES,
            incoming_pod=self._pod("vms"),
            candidate=self.random.choice(_NODES),
        )

    def neighbour(self) -> Object:
        """A pod on a node, perhaps one with anti-affinity."""
        terms = [self._term() for _ in range(self.random.choice((1, 1, 2)))] if self.odds(20) else []
        affinity = {"podAntiAffinity": {REQUIRED: terms}}
        namespace = "vms" if self.odds(75) else self.random.choice(("apps", "spare"))
        return self._pod(namespace, nodeName=self.random.choice(_NODES), affinity=affinity)

    def _node(self, index: int, name: str) -> Object:
        """A node in one of two zones and three racks; some have no label of one kind."""
        host = f"h{0 if self.odds(8) else index}"
        labels = {"zone": self.random.choice("aab"), "rack": self.random.choice("123"), _HOST: host}
        described = builders.node(name)
        described["metadata"]["labels"] = {key: value for key, value in labels.items() if not self.odds(6)}
        return described

    def _pod(self, namespace: str, **spec: Any) -> Object:
        labels = {"role": self.random.choice(_ROLES)}
        if self.odds(50):
            labels["tier"] = self.random.choice(("gold", "tin"))
        return {"metadata": {"namespace": namespace, "labels": labels}, "spec": spec}

    def _term(self) -> Object:
        key = self.random.choice(("zone", "rack", *[_HOST] * 6))
        term: Object = {"topologyKey": key, "labelSelector": self._selector()}
        if self.odds(20):
            term["namespaces"] = self.random.sample(list(_NAMESPACES), self.random.choice((1, 2)))
        if self.odds(25):
            term["namespaceSelector"] = self.random.choice(_NAMESPACE_SELECTORS)
        return term

    def _selector(self) -> Object | None:
        """A label selector: mostly of one role."""
        if self.odds(10):
            return self.random.choice((None, {}))
        made: Object = {}
        if self.odds(60):
            made["matchLabels"] = {"role": self.random.choice(_ROLES)}
        if self.odds(40) or not made:
            made["matchExpressions"] = [self.random.choice(_EXPRESSIONS)]
        return made
