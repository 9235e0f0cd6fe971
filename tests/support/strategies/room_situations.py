"""A node, the pods on it, and a pod that wants to go there: drawn so that about half of them just fit, or just do not.

Each situation stands on a node of its own, and its pod can go nowhere else. What the node has is drawn last, close to
what is asked of it. Amounts come in all spellings, and few: so that sums meet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from msgspec import convert
from support.objects import builders

from webhook.core.api.container import Workload
from webhook.core.scheduler.pod_requests import usage

Object = dict[str, Any]

NAMESPACE: Final = "parity"
LABEL: Final = "tests.kubevirt-coschedule/parity"  # of everything that a situation makes
OF: Final = "tests.kubevirt-coschedule/of"  # a label: the situation that the pod belongs to
ASKED: Final = {LABEL: "asked"}
THERE: Final = {LABEL: "there"}

_ZONES: Final = ("a", "b", "c")
_HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_AMOUNTS: Final = {
    "cpu": ("0", "50m", "100m", "0.25", "1", "1500m", "2", "1001u", "5e-1"),
    "memory": ("0", "64Mi", "128974848", "129M", "1Gi", "1.5Gi", "0.3Gi", "100e6", "1k", "128974848000m", "1500m"),
    "ephemeral-storage": ("50M", "1Gi", "100Ki", "1"),
}
_WHOLE: Final = {  # overcommit is forbidden: requests are limits
    "devices.kubevirt.io/kvm": ("1", "2"),
    "example.com/gpu": ("1", "2", "3"),
    "hugepages-2Mi": ("4Mi", "64Mi"),
    "hugepages-1Gi": ("1Gi", "2Gi"),
}
_TAINTS: Final = ("dedicated=vms:NoSchedule", "dedicated=vms:NoExecute", "old:NoSchedule", "old:PreferNoSchedule")
_TOLERATIONS: Final = (
    {"key": "dedicated", "operator": "Equal", "value": "vms"},
    {"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "old", "operator": "Exists"},
    {"operator": "Exists"},
)
_EXPRESSIONS: Final = (
    {"key": "zone", "operator": "In", "values": ["a", "b"]},
    {"key": "zone", "operator": "NotIn", "values": ["b"]},
    {"key": "disk", "operator": "Exists"},
    {"key": "disk", "operator": "DoesNotExist"},
    {"key": "cpu", "operator": "Gt", "values": ["8"]},
)


@dataclass
class Existing:
    """A pod that is on the node, the phase that it comes to, and whether it is then deleted: it still stays."""

    pod: Object
    phase: str = ""
    deleted: bool = False


@dataclass
class Situation:
    """`far` are pods on nodes of no situation."""

    name: str
    pod: Object
    node: Object
    existing: list[Existing] = field(default_factory=list)
    far: list[Object] = field(default_factory=list)


def zone_nodes() -> Iterator[Object]:
    """One node for each zone, with room for all pods that are far from a situation."""
    for zone in _ZONES:
        made = builders.node(f"zone-{zone}", labels={LABEL: "node", "zone": zone})
        made["status"]["allocatable"]["pods"] = "100000"
        yield made


class Situations:
    """Draws situations; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - for a test

    def draw(self, number: int) -> Situation:
        """The next one."""
        random, name = self._random, f"s{number:05}"
        node = builders.node(name, cordoned=random.random() < 0.02)
        labels = {"zone": random.choice(_ZONES), "disk": "ssd", "cpu": random.choice(("4", "16"))}
        node["metadata"]["labels"] |= {key: value for key, value in labels.items() if random.random() < 0.7}
        node["metadata"]["labels"][LABEL] = "node"
        drawn = Situation(name, _pod(name, name, ASKED, self._spec()), node)
        for index in range(random.choice((0, 1, 2, 2, 3))):
            drawn.existing.append(self._existing(f"{name}-{index}", name))
        if random.random() < 0.3:
            self._give_constraints(drawn)
        if random.random() < 0.15:
            on = {"nodeName": f"zone-{random.choice(_ZONES)}", "containers": [{"name": "c", "image": "none"}]}
            drawn.far.append(_pod(f"{name}-far", name, THERE, {**on, "affinity": self._apart(name)}))
        _pin(drawn.pod, name)
        amounts = self._allocatable(drawn)
        node["status"] |= {"capacity": amounts, "allocatable": amounts}
        return drawn

    def _existing(self, name: str, node: str) -> Existing:
        random = self._random
        spec = self._spec() | {"nodeName": node}
        if random.random() < 0.15:
            spec["affinity"] = self._apart(node)
        pod, chance = _pod(name, node, THERE, spec), random.random()
        return Existing(pod, random.choice(("Succeeded", "Failed")) if chance < 0.12 else "", 0.12 <= chance < 0.2)

    def _spec(self) -> Object:
        """A PodSpec with containers of all kinds."""
        random = self._random
        spec: Object = {"containers": [self._container(f"c{n}") for n in range(random.choice((1, 1, 2, 3)))]}
        if random.random() < 0.45:
            spec["initContainers"] = [
                self._container(f"i{n}") | ({"restartPolicy": "Always"} if random.random() < 0.5 else {})
                for n in range(random.choice((1, 2, 3)))
            ]
        return spec

    def _container(self, name: str) -> Object:
        random = self._random
        asked = {each: random.choice(texts) for each, texts in _AMOUNTS.items() if random.random() < 0.6}
        whole = {each: random.choice(texts) for each, texts in _WHOLE.items() if random.random() < 0.12}
        if any(each.startswith("hugepages-") for each in whole):
            asked.setdefault("cpu", "100m")  # the API server wants one beside them
        if random.random() < 0.5:  # or limits alone, which the server takes for requests
            asked |= whole
        return {"name": name, "image": "example.com/none", "resources": {"requests": asked, "limits": whole}}

    def _apart(self, name: str) -> Object:
        """A required anti-affinity, mostly about the pods of this situation."""
        random = self._random
        expression = {"key": OF, "operator": "In", "values": [random.choice((name, "nobody")), "none"]}
        selector = random.choice(
            ({"matchLabels": {OF: name}}, {"matchLabels": {OF: "none"}}, {"matchExpressions": [expression]})
        )
        term: Object = {"labelSelector": selector, "topologyKey": random.choice((_HOSTNAME, _HOSTNAME, "zone"))}
        if random.random() < 0.2:
            term["namespaceSelector"] = random.choice(({}, {"matchLabels": {"team": "none"}}))
        if random.random() < 0.2:
            term["namespaces"] = random.choice(([NAMESPACE], ["none"]))
        return {"podAntiAffinity": {_REQUIRED: [term]}}

    def _give_constraints(self, drawn: Situation) -> None:
        random, spec = self._random, drawn.pod["spec"]
        if random.random() < 0.6:
            taints = random.sample(_TAINTS, random.choice((1, 1, 2)))
            drawn.node["spec"].setdefault("taints", []).extend(map(builders.taint, taints))
            spec["tolerations"] = random.sample(_TOLERATIONS, random.choice((0, 1, 1, 2)))
        if random.random() < 0.3:
            spec["nodeSelector"] = {"zone": random.choice("ab")}
        if random.random() < 0.5:
            terms = [{"matchExpressions": [expression]} for expression in random.sample(_EXPRESSIONS, 2)]
            spec["affinity"] = builders.node_affinity(required=terms)

    def _allocatable(self, drawn: Situation) -> Object:
        """What is needed, and of one thing perhaps one too few."""
        random = self._random
        there = [each.pod for each in drawn.existing if not each.phase]
        asked = dict(usage(convert(drawn.pod["spec"], Workload)).requests)
        needed = Counter(asked)
        for pod in there:
            needed.update(dict(usage(convert(pod["spec"], Workload)).requests))
        tight = random.choice([*asked, "pods", "nothing", "nothing"])
        amounts = {name: amount + random.randrange(amount + 10) for name, amount in needed.items()}
        needed["pods"] = len(there) + 1
        amounts["pods"] = needed["pods"] + random.randrange(5)
        if tight in needed:
            amounts[tight] = max(0, needed[tight] + random.choice((-1, -1, 0, 0, 1)))
        if asked and random.random() < 0.03:
            del amounts[random.choice(list(asked))]
        return {name: self._spelled(name, amount) for name, amount in amounts.items()}

    def _spelled(self, resource: str, amount: int) -> str:
        if resource == "cpu":
            return f"{amount}m" if self._random.random() < 0.5 else f"{amount // 1000}.{amount % 1000:03}"
        return f"{amount >> 10}Ki" if amount % 1024 == 0 else str(amount)


def _pod(name: str, situation: str, labels: Object, spec: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {**labels, OF: situation}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pin(pod: Object, node: str) -> None:
    """To its node, whatever else it asks for."""
    affinity = pod["spec"].setdefault("affinity", {})
    own = affinity.setdefault("nodeAffinity", builders.node_affinity(required=[{}])["nodeAffinity"])
    for term in own[_REQUIRED]["nodeSelectorTerms"]:
        term.update(builders.on_node(node))
