"""A node, the pods on it, and a pod that wants to go there: drawn so that about half of them just fit, or just do not.

Each situation stands on a node of its own, and its pod can go nowhere else. What the node has is drawn last, close to
what is asked of it: as we count it, so that a count that is wrong by anything is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from msgspec import convert
from support.objects import builders
from support.strategies.room_pods import OVERHEAD, RUNTIME_CLASS, PodShapes
from support.strategies.room_rules import OF, Rules

from webhook.core.api.container import Workload
from webhook.core.api.pod import PodStatus
from webhook.core.scheduler.state.pod_requests import is_over, usage

Object = dict[str, Any]

NAMESPACE: Final = "parity"
LABEL: Final = "tests.kubevirt-coschedule/parity"  # of everything that a situation makes
ASKED: Final = {LABEL: "asked"}
THERE: Final = {LABEL: "there"}
DRIVERS: Final = (builders.LONGHORN_DRIVER, "other.csi.example.com")

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
    """A pod that is on the node, what its status becomes, and whether it is then deleted. A deleted pod still stays."""

    pod: Object
    status: Object | None = None
    deleted: bool = False


@dataclass
class Situation:
    """`others` are what else must be there before the pods are: claims, volumes, CSINode, attachments.

    `far` are pods on nodes of no situation.
    """

    name: str
    pod: Object
    node: Object = field(default_factory=dict)
    existing: list[Existing] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    far: list[Object] = field(default_factory=list)

    @property
    def is_resized(self) -> bool:
        """Whether a pod on the node is, or was, being resized."""
        return any("containerStatuses" in (each.status or ()) for each in self.existing)


class Situations:
    """Draws situations; the same seed gives the same ones.

    `resizes`: whether some pods are being resized; a kubelet of Kubernetes 1.30 reports none by default.
    """

    def __init__(self, seed: int, *, resizes: bool = True) -> None:
        self._random, self._resizes = Random(seed), resizes  # noqa: S311 - for a test
        self._shapes, self._rules = PodShapes(self._random), Rules(self._random)

    def draw(self, number: int) -> Situation:
        """The next one."""
        random, name = self._random, f"s{number:05}"
        pod = _pod(name, self._shapes.spec(), {**ASKED, OF: name})
        if random.random() < 0.8:
            for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
                container.pop("ports", None)
        drawn = Situation(name, pod)
        for index in range(random.choice((0, 1, 2, 2, 3))):
            drawn.existing.append(self._existing(f"{name}-{index}", name))
        drawn.node = builders.node(name, cordoned=random.random() < 0.02)
        drawn.node["metadata"]["labels"] |= {LABEL: "node"} | self._labels()
        if random.random() < 0.15:
            self._give_volumes(drawn)
        if random.random() < 0.3:
            self._give_constraints(drawn)
        self._give_rules(drawn)
        _pin(pod, name)
        amounts = self._allocatable(drawn)
        drawn.node["status"] |= {"capacity": amounts, "allocatable": amounts}
        if "overhead" in pod["spec"] and random.random() < 0.5:
            del pod["spec"]["overhead"]  # the RuntimeClass gives it back
        return drawn

    def _existing(self, name: str, node: str) -> Existing:
        random = self._random
        spec = self._shapes.spec() | {"nodeName": node}
        pod, chance = _pod(name, spec, {**THERE, OF: node}), random.random()
        if chance < 0.12:
            return Existing(pod, {"phase": random.choice(("Succeeded", "Failed"))})
        if chance < 0.35:
            status = self._shapes.status(spec)
            return Existing(pod, status if self._resizes else {"phase": status["phase"]})
        return Existing(pod, deleted=chance < 0.43)

    def _give_rules(self, drawn: Situation) -> None:
        random = self._random
        if random.random() < 0.2:
            self._rules.give_own(drawn.name, drawn.pod["spec"])
        for each in drawn.existing:
            if random.random() < 0.15:
                self._rules.give_other(drawn.name, each.pod["spec"])
        if random.random() < 0.15:
            drawn.far.append(self._rules.far(drawn.name, THERE, NAMESPACE))

    def _labels(self) -> Object:
        random = self._random
        drawn = {"zone": random.choice("abc"), "disk": "ssd", "cpu": random.choice(("4", "16"))}
        return {key: value for key, value in drawn.items() if random.random() < 0.7}

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

    def _give_volumes(self, drawn: Situation) -> None:
        """Claims to any of the pods, some used by two of them; attachments, and limits near what comes together."""
        random, name = self._random, drawn.name
        pods = [drawn.pod, *(each.pod for each in drawn.existing)]
        counts = Counter(random.choices(DRIVERS, (3, 1), k=random.randint(1, 5)))
        for index, driver in enumerate(counts.elements()):
            volume = f"{name}-v{index}"
            drawn.others += self._volume(volume, driver)
            for pod in random.sample(pods, random.randint(0, min(2, len(pods)))):
                pod["spec"].setdefault("volumes", []).append(builders.claim_volume(f"v-{volume}", volume))
            if random.random() < 0.3:
                drawn.others.append(_attachment(name, volume, driver))
        limits = {driver: max(0, counts[driver] - random.choice((0, 0, 1, 2))) for driver in DRIVERS}
        drawn.others.append(_csi_node(name, {driver: limits[driver] for driver in DRIVERS if random.random() < 0.8}))

    def _volume(self, name: str, driver: str) -> list[Object]:
        """A volume, and its claim; a pod on a node can have lost that."""
        terms = [{"matchExpressions": [_EXPRESSIONS[0]]}] if self._random.random() < 0.08 else None
        made = builders.persistent_volume(
            name, claim=name, namespace=NAMESPACE, driver=driver, labels={LABEL: "volume"}, terms=terms
        )
        claim = builders.persistent_volume_claim(name, namespace=NAMESPACE, volume_name=name)
        return [made] if self._random.random() < 0.02 else [claim, made]

    def _allocatable(self, drawn: Situation) -> Object:
        """What is needed, and of one thing perhaps one too few."""
        random = self._random
        asked = dict(usage(convert(drawn.pod["spec"], Workload)).requests)
        needed, pods = Counter(asked), 0
        for each in drawn.existing:
            status = convert(each.status or {}, PodStatus)
            if not is_over(status.phase):
                needed.update(dict(usage(convert(each.pod["spec"], Workload), status).requests))
                pods += 1
        tight = random.choice([*asked, "pods", "nothing", "nothing"])
        amounts = {name: amount + random.randrange(amount + 10) for name, amount in needed.items()}
        amounts["pods"] = pods + 1 + random.randrange(5)
        needed["pods"] = pods + 1
        if tight in needed:
            amounts[tight] = max(0, needed[tight] + random.choice((-1, -1, 0, 0, 1)))
        if asked and random.random() < 0.03:
            del amounts[random.choice(list(asked))]
        return {name: self._spelled(name, amount) for name, amount in amounts.items()}

    def _spelled(self, resource: str, amount: int) -> str:
        if resource == "cpu":
            return f"{amount}m" if self._random.random() < 0.5 else f"{amount // 1000}.{amount % 1000:03}"
        return f"{amount >> 10}Ki" if amount % 1024 == 0 else str(amount)


def _pod(name: str, spec: Object, labels: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pin(pod: Object, node: str) -> None:
    """To its node, whatever else it asks for."""
    affinity = pod["spec"].setdefault("affinity", {})
    own = affinity.setdefault("nodeAffinity", builders.node_affinity(required=[{}])["nodeAffinity"])
    for term in own["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]:
        term.update(builders.on_node(node))


def _attachment(node: str, volume: str, driver: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"{volume}-attached", "labels": {LABEL: "attachment"}},
        "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}},
    }


def _csi_node(node: str, limits: Mapping[str, int]) -> Object:
    """Both drivers are on the node, with a limit or without."""
    drivers = [
        {"name": driver, "nodeID": node, **({"allocatable": {"count": limits[driver]}} if driver in limits else {})}
        for driver in DRIVERS
    ]
    meta = {"name": node, "labels": {LABEL: "csinode"}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": {"drivers": drivers}}


def runtime_class() -> Object:
    """The one that gives overhead."""
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": RUNTIME_CLASS},
        "handler": RUNTIME_CLASS,
        "overhead": {"podFixed": OVERHEAD},
    }
