"""Pods with one long field, as anybody with the right to create pods can write them."""

from __future__ import annotations

from typing import Final

from support.objects import builders
from support.objects.builders import Object

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def preferring(count: int) -> Object:
    """Node affinity with so many preferred nodes."""
    return builders.node_affinity(preferred={f"node-{each:05}": 1 for each in range(count)})


def repelling(count: int) -> Object:
    """Anti-affinity over the hostname to pods with one of so many values."""
    values = {"key": "app", "operator": "In", "values": [f"a-{each}" for each in range(count)]}
    term = {"labelSelector": {"matchExpressions": [values]}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def with_labels(described: Object, count: int) -> Object:
    """The pod with so many labels more."""
    described["metadata"]["labels"] |= {f"label-{each}": "" for each in range(count)}
    return described


def with_ports(described: Object) -> Object:
    """The pod with many host ports."""
    described["spec"]["containers"][0]["ports"] = [{"containerPort": each, "hostPort": each} for each in range(1, 9999)]
    return described
