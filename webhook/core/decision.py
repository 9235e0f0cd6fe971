"""Decision: what the webhook does with one pod, for which nodes, and by which evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from webhook.core.evidence.facts import Finding
from webhook.core.opt_in import Mode, OptedInBy
from webhook.core.reasons import CHAIN_ORDER, Reason, Why, shortened
from webhook.core.scheduler.pod_requests import Usage

NODES_SHOWN: Final = 3  # in the annotations; explain and the log show all nodes
TOP_WEIGHT: Final = 100  # v1.PreferredSchedulingTerm: weights are 1..100


class NodeFit(Struct, frozen=True):
    """Rule 7 for one pod and one node: can the pod run there?

    Attributes:
        node: the node's name.
        why: NODE_FEASIBLE, or the first reason against the node.
        preferable: False if even a preference for the node would be wrong.
    """

    node: str
    why: Why
    preferable: bool = True

    @property
    def feasible(self) -> bool:
        """Whether the pod can start if this is the only node that it may run on."""
        return self.why.reason is Reason.NODE_FEASIBLE

    @property
    def fits(self) -> bool:
        """Whether kube-scheduler would take this node now; other pods can still take its resources first."""
        return self.why.reason.columns.fits


class WeightedNode(Struct, frozen=True):
    """A preferred node and the weight of the preference (1..100)."""

    node: str
    weight: int


class Leave(Struct, frozen=True, kw_only=True):
    """The pod's affinity stays as it is.

    `opted_in` says that the VM asked for co-scheduling. Then the pod gets an annotation that shows the reason. `by`
    says who opted it in.
    """

    why: Why
    opted_in: bool = False
    by: OptedInBy = OptedInBy.VM
    findings: Sequence[Finding] = ()
    node_fits: Sequence[NodeFit] = ()


class Pin(Struct, frozen=True, kw_only=True):
    """The pod must run on certain nodes, or kube-scheduler is asked to prefer them.

    Attributes:
        why: for required nodes the evidence of the best one; for preferred nodes why they are not required.
        required: the nodes, best first, of which the pod may take any. Empty for a mere preference.
        preferred: the same nodes or more with their weights, best first.
        shortlist: in a large cluster the nodes among which kube-scheduler chooses, so that it scores the preferred one.
            Empty: any node.
        requests: what the pod takes of a node.
        findings: what each claim led to, or each VM.
        node_fits: rule 7 for each node that the evidence names.
        by: who opted the VM in.
    """

    why: Why
    required: tuple[str, ...] = ()
    preferred: tuple[WeightedNode, ...]
    shortlist: tuple[str, ...] = ()
    requests: Usage = Usage()
    findings: Sequence[Finding] = ()
    node_fits: Sequence[NodeFit] = ()
    by: OptedInBy = OptedInBy.VM

    @property
    def strength(self) -> Mode:
        """REQUIRED or PREFERRED."""
        return Mode.REQUIRED if self.required else Mode.PREFERRED

    @property
    def nodes(self) -> tuple[str, ...]:
        """The required nodes, or the preferred ones if none is required; best first."""
        return self.required or tuple(weighted.node for weighted in self.preferred)


class Steer(Pin, frozen=True, kw_only=True):
    """A share-manager pod is steered to its VMs: always a preference.

    Attributes:
        near: the preferred nodes, each of which gets a preferred pod affinity term.
        by_node: whether the preferred nodes get preferred node affinity terms, too.
    """

    near: tuple[WeightedNode, ...] = ()
    by_node: bool = False


Decision = Pin | Leave
UNCHANGED: Final = "unchanged"


def outcome(decision: Decision) -> str:
    """Return the decision in one word, for logs and metrics: required, preferred or unchanged."""
    return decision.strength.value if isinstance(decision, Pin) else UNCHANGED


def audited(pin: Pin) -> Leave:
    """Return the decision of a webhook that only audits: the pod stays unchanged, and the reason has all of `pin`."""
    reason = Reason.AUDIT_REQUIRED if pin.strength is Mode.REQUIRED else Reason.AUDIT_PREFERRED
    why = reason.why(decision=decision_sentence(pin))
    return Leave(why=why, opted_in=True, findings=pin.findings, node_fits=pin.node_fits)


def rank(nodes: Iterable[str]) -> dict[str, int]:
    """Return node -> how often it occurs among `nodes`; the most frequent first, equal ones by name."""
    return dict(sorted(Counter(nodes).items(), key=lambda item: (-item[1], item[0])))


def weigh(ranked: Mapping[str, int]) -> tuple[WeightedNode, ...]:
    """Return weight 100 for the most frequent node, the others in proportion (halves rounded up), at least 1."""
    most = max(ranked.values())
    return tuple(
        WeightedNode(node, max(1, (2 * TOP_WEIGHT * count + most) // (2 * most))) for node, count in ranked.items()
    )


def evidence_for(node: str, findings: Sequence[Finding]) -> Finding:
    """Return the strongest finding that names this node. A disk of the VM's own comes first."""
    return max(
        (finding for finding in findings if finding.node == node),
        key=lambda finding: (finding.use, CHAIN_ORDER[finding.why.reason]),
    )


def why_not_required(decision: Decision) -> Why | None:
    """Return why no node is required; None for required nodes, and for a share-manager pod, where that is the rule."""
    if isinstance(decision, Steer) or (isinstance(decision, Pin) and decision.strength is Mode.REQUIRED):
        return None
    return decision.why


def nodes_in_words(nodes: Sequence[str], more: int = 0) -> str:
    """Return the names of the first nodes, and how many there are beyond them and the `more` that are not known."""
    shown = nodes[:NODES_SHOWN]
    more += len(nodes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def decision_sentence(decision: Decision) -> str:
    """Return the decision and its evidence as one sentence, which `kubectl describe pod` shows. No program reads it."""
    by = "" if decision.by is OptedInBy.VM else f"; opted in by {decision.by}"
    if isinstance(decision, Leave):
        return shortened(f"unchanged: {decision.why}{by}")
    names = nodes_in_words(decision.nodes)
    evidence = "; ".join(str(evidence_for(node, decision.findings).why) for node in decision.nodes[:NODES_SHOWN])
    if decision.strength is Mode.REQUIRED:
        return shortened(f"required on {names}: {evidence}{by}")
    among = f"; required on any of {len(decision.shortlist)} nodes, so that the scheduler looks at each of them"
    sentence = f"preferred on {names}: {evidence}{among if decision.shortlist else ''}{by}"
    why = why_not_required(decision)
    return shortened(f"{sentence}; not required, because {why}" if why else sentence)
