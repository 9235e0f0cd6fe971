"""What could be written into a share-manager pod so that it follows its VM: affinities to compare. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from support.control_plane.kube_api import Object
from support.objects import builders
from uneven import ColdStart, UnevenNode

_LISTED_MOST: Final = 64
_WEIGHT: Final = 100  # the most that a term may have
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Wish(NamedTuple):
    """One way. `listed`: how many nodes are required, any of them; 0 is no such list."""

    listed: int = 0
    alike: bool = False
    """The list has no node that the scheduler shuns less than the VM's."""
    times: int = 1
    """How often the preferred term is written."""
    delinquent: bool = False
    """Longhorn has written its own term there, against a node that died."""
    near: bool = False
    """A preferred podAffinity towards the VM's pod, too."""

    def affinity(self, start: ColdStart, cluster: Sequence[UnevenNode], random: Random) -> Object:
        """The affinity for one cold start."""
        dead, *others = random.sample([node for node in cluster if node != start.node], len(cluster) - 1)
        if self.alike and start.node.is_shunned:
            others = [node for node in others if node.is_shunned]
        names = [node.name for node in (start.node, *others)[: self.listed]]
        affinity = builders.node_affinity(required=map(builders.on_node, names), preferred={start.node.name: _WEIGHT})
        terms = affinity["nodeAffinity"][_PREFERRED]
        terms *= self.times
        if self.delinquent:
            terms.insert(0, _term_against(dead.name))
        if self.near:
            affinity["podAffinity"] = {_PREFERRED: [_term_towards(start)]}
        return affinity


def wishes(size: int) -> Mapping[str, Wish]:
    """Each by its name, for a cluster of so many nodes."""
    preferred = {
        "preferred": Wish(),
        "preferred, podAffinity": Wish(near=True),
        "preferred, beside Longhorn's NotIn": Wish(delinquent=True),
        "preferred, podAffinity, beside NotIn": Wish(delinquent=True, near=True),
        "preferred 10 times, podAffinity, beside NotIn": Wish(times=10, delinquent=True, near=True),
    }
    if size <= _LISTED_MOST:
        return preferred
    return preferred | {
        "list of 16": Wish(16),
        "list of 32": Wish(32),
        "list of 64": Wish(64),
        "list of 64, beside NotIn": Wish(64, delinquent=True),
        "list of 64, podAffinity": Wish(64, near=True),
        "list of 64, podAffinity, beside NotIn": Wish(64, delinquent=True, near=True),
        "list of 64, 10 times, podAffinity, beside NotIn": Wish(64, times=10, delinquent=True, near=True),
        "list of 64 as shunned": Wish(64, alike=True),
        "list of 64 as shunned, beside NotIn": Wish(64, alike=True, delinquent=True),
        "list of 64 as shunned, 10 times, beside NotIn": Wish(64, alike=True, times=10, delinquent=True),
    }


def longhorns_own(start: ColdStart, cluster: Sequence[UnevenNode], random: Random) -> Object:
    """The affinity that Longhorn gives a share-manager pod whose last node died (share_manager_controller.go)."""
    dead = random.choice([node for node in cluster if node != start.node])
    return {"nodeAffinity": {_PREFERRED: [_term_against(dead.name)]}}


def _term_against(node: str) -> Object:
    gone = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    return {"weight": _WEIGHT, "preference": {"matchFields": [gone]}}


def _term_towards(start: ColdStart) -> Object:
    term = {
        "labelSelector": {"matchLabels": {"vm.kubevirt.io/name": start.vm}},
        "namespaces": [builders.NAMESPACE],
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"weight": _WEIGHT, "podAffinityTerm": term}
