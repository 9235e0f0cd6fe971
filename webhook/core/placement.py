"""decide(): Pin | Leave | Needs, for one pod at its CREATE and one view of the cluster.

The rules of the house in their order, cheapest first. Every outcome carries its Why. Invariants: a hard pin names
only nodes with firm evidence that were judged feasible; nothing here raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from webhook.core import claims, fit, shortlist
from webhook.core.api import kubevirt
from webhook.core.api.admission_review import POD, RequestHead
from webhook.core.api.kubevirt import LABEL_APP, LABEL_MIGRATION_JOB_UID, VIRT_LAUNCHER
from webhook.core.api.meta import Key
from webhook.core.api.node_selector import MAX_TERMS, most_nodes
from webhook.core.api.pod import Pod
from webhook.core.claims import Finding
from webhook.core.feasibility import Verdict
from webhook.core.fit import Applicant
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, CHAIN_ORDER, Reason, Why
from webhook.core.requests import Usage
from webhook.core.view import ClusterView, Needs

_NODES_TOLD: Final = 3  # in the annotation; explain and the log have them all
TOP_WEIGHT: Final = 100  # v1.PreferredSchedulingTerm: weights are 1..100
_ANNOTATION_RECEIVER: Final = "kubevirt.io/create-migration-target"
_ANNOTATION_PROVISIONING: Final = "kubevirt.io/ephemeral-provisioning"
_VALUE_SHOWN_CHARS: Final = 48  # of an annotation that we do not understand: a warning should stay under 256


class Mode(StrEnum):
    """How hard a VM is bound to its share-manager's node. OFF is a cluster's default only, never a VM's choice."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    OFF = "off"


class Policy(Struct, frozen=True):
    """What the operator decided: the mode that the annotation value `true` stands for, and where Longhorn lives."""

    mode: Mode = Mode.REQUIRED
    longhorn_namespace: str = "longhorn-system"


class WeightedNode(Struct, frozen=True):
    """A node to prefer, and how much (1..100)."""

    node: str
    weight: int


class Leave(Struct, frozen=True, kw_only=True):
    """The pod's affinity stays as it is. `opted_in` says that the VM asked for us, and is owed an annotation."""

    why: Why
    opted_in: bool = False
    findings: Sequence[Finding] = ()
    verdicts: Sequence[Verdict] = ()


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
    verdicts: Sequence[Verdict] = ()

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

    toward: tuple[Key, ...] = ()


Decision = Pin | Leave


def foreign(request: RequestHead) -> Why | None:
    """Rule 1: why the request is not the creation of a pod, None where it is."""
    if request.kind != POD:
        return Reason.NOT_A_POD.why(kind=str(request.kind) or "nothing")
    if request.operation != "CREATE":
        return Reason.NOT_A_CREATE.why(operation=request.operation or "nothing")
    if request.sub_resource:
        return Reason.SUBRESOURCE.why(subresource=request.sub_resource)
    return None


def decide(pod: Pod, namespace: str, view: ClusterView, policy: Policy) -> Decision | Needs:
    """What to do with a pod that is being created in `namespace`, or what must be read first. Never raises."""
    mode = _our_mode(pod, policy)
    if isinstance(mode, Why):
        return Leave(why=mode)
    return _place(pod, namespace, mode, view)


def _our_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rules 2 to 4: the mode this pod asks for, or why it is not ours to place."""
    meta = pod.metadata
    if meta.label(LABEL_APP) != VIRT_LAUNCHER:
        return Reason.NOT_VIRT_LAUNCHER.why()
    if meta.label(LABEL_MIGRATION_JOB_UID) is not None:
        return Reason.MIGRATION_TARGET.why()
    if meta.annotation(_ANNOTATION_RECEIVER) == "true":
        return Reason.MIGRATION_RECEIVER.why()
    if meta.annotation(_ANNOTATION_PROVISIONING) == "true":
        return Reason.EPHEMERAL_PROVISIONING.why()
    if pod.spec.node_name:
        return Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name)
    return asked_mode(pod, policy)


def asked_mode(pod: Pod, policy: Policy) -> Mode | Why:
    """Rule 4: the mode that the annotation of a virt-launcher pod asks for, or why it asks for none."""
    match pod.metadata.annotation(ANNOTATION_CO_SCHEDULE):
        case None:
            return Reason.NOT_OPTED_IN.why()
        case "false":
            return Reason.OPTED_OUT.why()
        case "true":
            return Reason.MODE_OFF.why() if policy.mode is Mode.OFF else policy.mode
        case "required":
            return Mode.REQUIRED
        case "preferred":
            return Mode.PREFERRED
        case other:
            return Reason.BAD_CO_SCHEDULE.why(value=ascii(other)[:_VALUE_SHOWN_CHARS])


def _place(pod: Pod, namespace: str, mode: Mode, view: ClusterView) -> Decision | Needs:
    """Rules 5 to 8 for a pod that opted in with `mode` (REQUIRED or PREFERRED)."""
    findings = claims.resolve(pod, namespace, view)
    if isinstance(findings, Needs):
        return findings
    ranked = _rank(findings)
    if not ranked:
        furthest = max(findings, key=lambda finding: CHAIN_ORDER[finding.why.reason], default=None)
        return Leave(why=furthest.why if furthest else Reason.NO_CLAIMS.why(), opted_in=True, findings=findings)
    who = fit.applicant(pod, namespace, claims.bound_volumes(findings))
    verdicts = fit.settled([fit.judge(node, who, view) for node in ranked])
    if isinstance(verdicts, Needs):
        return verdicts
    wished = {verdict.node: ranked[verdict.node] for verdict in verdicts if verdict.preferable}
    if not wished:
        return Leave(why=verdicts[0].why, opted_in=True, findings=findings, verdicts=verdicts)
    required = _required(who, mode, findings, verdicts, view)
    soft = isinstance(required, Why)
    return Pin(
        why=required if isinstance(required, Why) else evidence_for(required[0], findings).why,
        required=() if isinstance(required, Why) else required,
        preferred=weigh(wished)[:MAX_TERMS],
        shortlist=_shortlist(who, findings, verdicts, view) if soft else (),
        usage=who.usage,
        findings=findings,
        verdicts=verdicts,
    )


def _shortlist(
    who: Applicant, findings: Sequence[Finding], verdicts: Sequence[Verdict], view: ClusterView
) -> tuple[str, ...]:
    """The nodes among which a preference is heard, where that can't cost the start.

    Not while a claim is open: its volume may come to be where none of them is.
    """
    fitting = [verdict.node for verdict in verdicts if verdict.fits]
    if not fitting or any(finding.open for finding in findings):
        return ()
    owner = kubevirt.owner(who.pod)
    reluctance = shortlist.reluctance_of(fitting[0], who.pod, view)
    return shortlist.pick(who, fitting, view, seed=(owner.uid if owner else None) or fitting[0], reluctance=reluctance)


def _rank(findings: Sequence[Finding]) -> dict[str, int]:
    """Node -> number of volumes whose share-manager it has, the most first, equals by name.

    What KubeVirt keeps of the VM itself counts only where no disk's share-manager is on a node: it is a few KB.
    """
    disks = {finding.volume_handle: finding.node for finding in findings if finding.node and not finding.state}
    state = {finding.volume_handle: finding.node for finding in findings if finding.node and finding.state}
    return rank((disks or state).values())


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


def _required(
    who: Applicant, mode: Mode, findings: Sequence[Finding], verdicts: Sequence[Verdict], view: ClusterView
) -> tuple[str, ...] | Why:
    """The nodes of a hard pin, best first, or why there can't be one."""
    pod = who.pod
    if mode is not Mode.REQUIRED:
        asker = "the cluster's setting" if pod.metadata.annotation(ANNOTATION_CO_SCHEDULE) == "true" else "the VM"
        return Reason.PREFERRED_MODE.why(who=asker)
    firm = {finding.node for finding in findings if finding.firm and not finding.state}
    candidates = [verdict for verdict in verdicts if verdict.node in firm]
    if not candidates:
        best = evidence_for(verdicts[0].node, findings)
        return Reason.STATE_CLAIM.why(claim=best.claim) if best.state else best.why
    blocked = (
        fit.undecidable(pod, view)
        or next((finding.why for finding in findings if finding.open), None)
        or fit.indivisible(who, view)
    )
    if blocked:
        return blocked
    doubt = view.doubt()
    if doubt:
        return Reason.UNCONFIRMED.why(doubt=doubt)
    feasible = tuple(verdict.node for verdict in candidates if verdict.feasible)
    if not feasible:
        return candidates[0].why
    # A topology spread was judged for a pin to one node: among several the scheduler may find none that it admits.
    wanted = 1 if pod.spec.topology_spread_constraints else len(feasible)
    most = most_nodes(pod.spec.required_node_affinity, wanted)
    return feasible[:most] or Reason.TOO_MANY_TERMS.why(limit=MAX_TERMS)


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
