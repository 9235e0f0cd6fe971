"""Small clusters in which pods matter to each other, made from a source of chance: the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, Self

from support.models.scheduler_model import REQUIRED, Situation
from support.objects import builders

Object = dict[str, Any]

_ROLES: Final = ("db", "web", "cache")
_LONG_AGO: Final = "2026-01-02T03:04:05Z"


class Setting:
    """The names that a situation is made of; situations with nothing in common do not matter to each other.

    `mark`: a label that every pod has. What looks into other namespaces asks for it.
    """

    def __init__(self, name: str = "", *, mark: str = "", node_count: int = 5) -> None:
        suffix = f"-{name}" if name else ""
        self.zone, self.rack = (f"tests/{key}{suffix}" for key in ("zone", "rack"))
        self.host, self.suffix = "kubernetes.io/hostname", suffix
        self.pool = f"tests/pool{suffix}"
        self.nodes = [f"n{suffix}-{index}" for index in range(node_count)]
        named = {f"{each}-{mark}" if mark else each: labels for each, labels in _NAMESPACES.items()}
        self.namespaces = {each: {"kubernetes.io/metadata.name": each, **labels} for each, labels in named.items()}
        self.home, *self.abroad = self.namespaces
        self.mark = {"mark": mark} if mark else {}


_NAMESPACES: Final = {"vms": {"team": "a"}, "apps": {"team": "b"}, "spare": {}}


class Maker:
    """Makes situations of a setting."""

    def __init__(self, random: Random, setting: Setting) -> None:
        self.random, self.setting = random, setting

    @classmethod
    def seeded(cls, seed: int, setting: Setting) -> Self:
        """One that makes the same of the same seed."""
        return cls(Random(seed), setting)  # noqa: S311 - chance for a test, not for a secret

    def odds(self, percent: int) -> bool:
        """True so often."""
        return self.random.randrange(100) < percent

    def nodes(self) -> list[Object]:
        """Nodes in two or three zones of one or two racks each; some have no label of one kind."""
        made = []
        for index, name in enumerate(self.setting.nodes):
            labels = {
                self.setting.zone: self.random.choice("aab"),
                self.setting.rack: self.random.choice("123"),
                self.setting.host: f"h{0 if self.odds(8) else index}{self.setting.suffix}",
                self.setting.pool: self.random.choice(("vms", "vms", "vms", "other")),
            }
            for key in (self.setting.zone, self.setting.rack, self.setting.host):
                if self.odds(6):
                    del labels[key]
            taints = ["reserved:NoSchedule"] if self.odds(15) else ["slow:PreferNoSchedule"] if self.odds(10) else []
            described = builders.node(name, labels=labels, taints=taints)
            described["metadata"]["labels"] = labels
            made.append(described)
        return made

    def labels(self) -> Object:
        """Labels of a pod."""
        labels: Object = {"role": self.random.choice(_ROLES), **self.setting.mark}
        if self.odds(50):
            labels["tier"] = self.random.choice(("gold", "tin"))
        if self.odds(60):
            labels["release"] = self.random.choice(("r1", "r2"))
        return labels

    def selector(self) -> Object | None:
        """A label selector: mostly of one role."""
        if self.odds(4):
            return None
        if self.odds(6):
            return {}
        made: Object = {}
        if self.odds(60):
            made["matchLabels"] = {"role": self.random.choice(_ROLES)}
        if self.odds(40) or not made:
            made["matchExpressions"] = [
                self.random.choice(
                    (
                        {"key": "role", "operator": "In", "values": self.random.sample(_ROLES, 2)},
                        {"key": "role", "operator": "NotIn", "values": [self.random.choice(_ROLES)]},
                        {"key": "tier", "operator": "In", "values": ["gold"]},
                        {"key": "tier", "operator": "NotIn", "values": ["gold"]},
                        {"key": "tier", "operator": "Exists"},
                        {"key": "tier", "operator": "DoesNotExist"},
                    )
                )
            ]
        return made

    def key(self) -> str:
        """A topology key."""
        return self.random.choice((self.setting.zone, self.setting.rack, *[self.setting.host] * 6))

    def term(self) -> Object:
        """A random PodAffinityTerm of this setting."""
        term: Object = {"topologyKey": self.key(), "labelSelector": self.selector()}
        if self.odds(20):
            named = list(self.setting.namespaces)
            term["namespaces"] = self.random.sample(named, self.random.choice((1, 2)))
        if self.odds(25):
            term["namespaceSelector"] = self.namespace_selector()
        if "namespaceSelector" in term and term["labelSelector"] is not None:
            own = term["labelSelector"].get("matchLabels") or {}
            term["labelSelector"] = {**term["labelSelector"], "matchLabels": {**own, **self.setting.mark}}
        if term["labelSelector"] is not None and self.odds(15):
            term[self.random.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["release"]
        return term

    def namespace_selector(self) -> Object:
        """All namespaces, some by their name, some by another label, or by what they are not."""
        name = {"key": "kubernetes.io/metadata.name", "values": [self.random.choice(list(self.setting.namespaces))]}
        return self.random.choice(
            (
                {},
                {"matchExpressions": [{**name, "operator": "In"}]},
                {"matchExpressions": [{**name, "operator": "NotIn"}]},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
                {"matchLabels": {"team": "b"}, "matchExpressions": [{**name, "operator": "In"}]},
            )
        )

    def constraint(self, key: str) -> Object:
        """A topology spread constraint, mostly a hard one."""
        made: Object = {
            "maxSkew": self.random.choice((1, 1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if self.odds(90) else "ScheduleAnyway",
            "labelSelector": self.selector(),
        }
        if made["whenUnsatisfiable"] == "DoNotSchedule" and self.odds(25):
            made["minDomains"] = self.random.choice((1, 2, 3))
        if self.odds(35):
            made["nodeAffinityPolicy"] = self.random.choice(("Honor", "Ignore"))
        if self.odds(35):
            made["nodeTaintsPolicy"] = self.random.choice(("Honor", "Ignore"))
        if made["labelSelector"] is not None and self.odds(15):
            made["matchLabelKeys"] = ["release"]
        return made

    def pod(self, name: str, namespace: str, **spec: Any) -> Object:
        """A pod; no controller, no volumes."""
        metadata = {"name": name, "namespace": namespace, "labels": self.labels()}
        containers = [{"name": "main", "image": "none"}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}

    def neighbour(self, index: int) -> Object:
        """A pod on a node, perhaps one with anti-affinity, perhaps one that is being deleted."""
        namespace = self.setting.home if self.odds(75) else self.random.choice(self.setting.abroad)
        spec: Object = {"nodeName": self.random.choice(self.setting.nodes)}
        if self.odds(20):
            terms = [self.term() for _ in range(self.random.choice((1, 1, 2)))]
            for term in terms:  # stored with the pod's own values in its selector: an API server's doing
                term.pop("matchLabelKeys", None)
                term.pop("mismatchLabelKeys", None)
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: terms}}
        made = self.pod(f"neighbour-{self.setting.nodes[0]}-{index}", namespace, **spec)
        if self.odds(8):
            made["metadata"] |= {"deletionTimestamp": _LONG_AGO, "finalizers": ["tests.kubevirt-coschedule/keep"]}
        return made

    def incoming_pod(self) -> Object:
        """The pod to be scheduled, with rules of one or two kinds."""
        kinds = self.random.choice(_KINDS)
        spec: Object = {"affinity": {}}
        if "affinity" in kinds:
            spec["affinity"]["podAffinity"] = {REQUIRED: [self.term() for _ in range(self.random.choice((1, 1, 2)))]}
        if "anti" in kinds:
            terms = [self.term() for _ in range(self.random.choice((1, 1, 2)))]
            spec["affinity"]["podAntiAffinity"] = {REQUIRED: terms}
        if "spread" in kinds:
            keys = self.random.sample(
                (self.setting.zone, self.setting.rack, self.setting.host), self.random.choice((1, 1, 2))
            )
            spec["topologySpreadConstraints"] = [self.constraint(key) for key in keys]
        if self.odds(30):
            spec["nodeSelector"] = {self.setting.pool: "vms"}
        spec["tolerations"] = [{"key": "reserved", "operator": "Exists"}] if self.odds(40) else []
        return self.pod(f"newcomer-{self.setting.nodes[0]}", self.setting.home, **spec)

    def situation(self, nodes: Sequence[Object] = ()) -> Situation:
        """Return a situation with one of everything; on `nodes` if they are given."""
        pod_index = [self.neighbour(index) for index in range(self.random.choice((0, 1, 2, 3, 4, 6, 8, 10)))]
        return Situation(
            nodes=nodes or self.nodes(),
            pods=pod_index,
            namespaces=self.setting.namespaces,
            incoming_pod=self.incoming_pod(),
            candidate=self.random.choice(self.setting.nodes),
        )


_KINDS: Final[Sequence[str]] = (
    "",
    "affinity",
    "anti",
    "anti",
    "spread",
    "affinity anti",
    "anti spread",
)
