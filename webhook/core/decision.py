"""Decision: what is done with one pod, for which nodes, and by which evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.api.meta import NamespacedName
from webhook.core.evidence.finding import Finding
from webhook.core.opt_in import Mode
from webhook.core.reasons import CHAIN_ORDER, Reason, Why
from webhook.core.scheduler.state.pod_requests import Usage

_FITS: Final = (Reason.NODE_FEASIBLE, Reason.NO_SHARE, Reason.OTHERS_ON_WAY, Reason.CROWD_BEFORE)
_NODES_TOLD: Final = 3  # in the annotation; explain and the log have them all
TOP_WEIGHT: Final = 100  # v1.PreferredSchedulingTerm: weights are 1..100


class NodeFit(Struct, frozen=True):
    """What was found of one node for one pod. `preferable` is False where even a preference would be wrong."""

    node: str
    why: Why
    preferable: bool = True

    @property
    def feasible(self) -> bool:
        """Whether a hard pin to this node can't strand the pod, as far as this module sees."""
        return self.why.reason is Reason.NODE_FEASIBLE

    @property
    def fits(self) -> bool:
        """Whether kube-scheduler would take this node now, whatever may come before the pod is looked at."""
        return self.why.reason in _FITS


class WeightedNode(Struct, frozen=True):
    """A node to prefer, and how much (1..100)."""

    node: str
    weight: int


class Leave(Struct, frozen=True, kw_only=True):
    """The pod's affinity stays as it is. `opted_in` says that the VM asked for us, and is owed an annotation."""

    why: Why
    opted_in: bool = False
    findings: Sequence[Finding] = ()
    verdicts: Sequence[NodeFit] = ()


class Pin(Struct, frozen=True, kw_only=True):
    """The pod is drawn to nodes: `required` (any of them, empty for a mere preference) and `preferred`, best first.

    `shortlist` is for a preference in a large cluster: the nodes that the scheduler is to choose from, so that it looks
    at the preferred ones at all. Empty: any. `usage` is what the pod takes of a node.
    """

    why: Why
    required: tuple[str, ...] = ()
    preferred: tuple[WeightedNode, ...]
    shortlist: tuple[str, ...] = ()
    usage: Usage = Usage()
    findings: Sequence[Finding] = ()
    verdicts: Sequence[NodeFit] = ()

    @property
    def strength(self) -> Mode:
        """REQUIRED or PREFERRED."""
        return Mode.REQUIRED if self.required else Mode.PREFERRED

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that count, best first."""
        return self.required or tuple(wish.node for wish in self.preferred)


class Steer(Pin, frozen=True, kw_only=True):
    """A share-manager pod is drawn to its VMs: a preference, and never more.

    `toward`: the VMs, by namespace and uid of the VirtualMachineInstance, whose pods it is drawn to as pods, too.
    """

    toward: tuple[NamespacedName, ...] = ()


Decision = Pin | Leave


def rank(nodes: Iterable[str]) -> dict[str, int]:
    """Node -> how often it is among `nodes`, the most first, equals by name."""
    counted: dict[str, int] = {}
    for node in nodes:
        counted[node] = counted.get(node, 0) + 1
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))) if len(counted) > 1 else counted


def weigh(ranked: Mapping[str, int]) -> tuple[WeightedNode, ...]:
    """100 for the node that counts most, the others in proportion (halves up), never under 1."""
    most = max(ranked.values())
    return tuple(
        WeightedNode(node, max(1, (2 * TOP_WEIGHT * count + most) // (2 * most))) for node, count in ranked.items()
    )


def evidence_for(node: str, findings: Sequence[Finding]) -> Finding:
    """The strongest finding that names this node; any disk's before that of KubeVirt's state."""
    return max(
        (finding for finding in findings if finding.node == node),
        key=lambda finding: (not finding.state, CHAIN_ORDER[finding.why.reason]),
    )


def tell(decision: Decision) -> str:
    """The decision and its evidence in a short sentence: what `kubectl describe pod` shows."""
    if isinstance(decision, Leave):
        return f"unchanged: {decision.why}"
    shown = decision.nodes[:_NODES_TOLD]
    names = ", ".join(shown) + (f" and {more} more" if (more := len(decision.nodes) - len(shown)) else "")
    evidence = "; ".join(str(evidence_for(node, decision.findings).why) for node in shown)
    if decision.strength is Mode.REQUIRED:
        return f"required on {names}: {evidence}"
    among = f"; required on any of {len(decision.shortlist)} nodes, so that the scheduler looks at each of them"
    told = f"preferred on {names}: {evidence}{among if decision.shortlist else ''}"
    return told if isinstance(decision, Steer) else f"{told}; not required, because {decision.why}"
