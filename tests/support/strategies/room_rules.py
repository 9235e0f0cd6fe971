"""Rules beside a node's amounts: of the pod that asks, which are never required with, and of pods that are bound."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from support.objects import builders

Object = dict[str, Any]

OF: Final = "tests.kubevirt-coschedule/of"  # a label: the situation that the pod belongs to
ZONES: Final = ("a", "b", "c")
_HOSTNAME: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def zone_node(zone: str) -> str:
    """The name of the node on which pods of other nodes are, as far as one situation is concerned."""
    return f"zone-{zone}"


def zone_nodes(labels: Object) -> Iterator[Object]:
    """One node for each zone, with room for all that are bound there."""
    for zone in ZONES:
        made = builders.node(zone_node(zone), labels={**labels, "zone": zone})
        made["status"]["allocatable"]["pods"] = "100000"
        yield made


class Rules:
    """Draws rules; the same random numbers give the same ones."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def give_own(self, name: str, spec: Object) -> None:
        """One rule with which no node is required."""
        term = self._term(name)
        match self._random.randrange(5):
            case 0:
                spec.setdefault("affinity", {})["podAffinity"] = {_REQUIRED: [term]}
            case 1:
                spec.setdefault("affinity", {})["podAntiAffinity"] = {_REQUIRED: [term]}
            case 2:
                constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}
                constraint.pop("namespaceSelector", None)
                spec["topologySpreadConstraints"] = [constraint]
            case 3:
                disk = {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2026-11.com.example:old", "lun": 0}
                spec.setdefault("volumes", []).append({"name": "inline", "iscsi": disk})
            case _:
                spec["containers"][0].setdefault("ports", []).append({"containerPort": 5901, "hostPort": 5901})

    def give_other(self, name: str, spec: Object) -> None:
        """Required anti-affinity to a pod on a node, which can be about the pod that asks."""
        spec.setdefault("affinity", {})["podAntiAffinity"] = {_REQUIRED: [self._term(name)]}

    def far(self, name: str, labels: Object, namespace: str) -> Object:
        """A pod on another node, with an anti-affinity over the nodes of its zone."""
        term = self._term(name) | {"topologyKey": self._random.choice(("zone", "zone", "rack", _HOSTNAME))}
        spec = {
            "nodeName": zone_node(self._random.choice(ZONES)),
            "containers": [{"name": "c", "image": "example.com/none"}],
            "affinity": {"podAntiAffinity": {_REQUIRED: [term]}},
        }
        metadata = {"name": f"{name}-far", "namespace": namespace, "labels": {**labels, OF: name}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _term(self, name: str) -> Object:
        """About the pods of this situation, mostly."""
        random = self._random
        selector: Object = random.choice(
            (
                {"matchLabels": {OF: name}},
                {"matchLabels": {OF: name}},
                {"matchLabels": {OF: "none"}},
                {"matchExpressions": [{"key": OF, "operator": "In", "values": [name, "none"]}]},
                {"matchExpressions": [{"key": OF, "operator": "In", "values": ["none", "nobody"]}]},
            )
        )
        drawn: Object = {"labelSelector": selector, "topologyKey": random.choice((_HOSTNAME, _HOSTNAME, "zone"))}
        if random.random() < 0.2:
            drawn["namespaceSelector"] = random.choice(({}, {"matchLabels": {"team": "none"}}))
        return drawn
