"""kube-scheduler's plugins that compare a pod with one node: NodeAffinity, VolumeBinding and TaintToleration.

Upstream: nodeaffinity/node_affinity.go, volumebinding/volume_binding.go and nodevolumelimits/csi.go in
 pkg/scheduler/framework/plugins. The terms are matched as in component-helpers
scheduling/corev1/nodeaffinity/nodeaffinity.go, also those of a PersistentVolume.

Invariant: these plugins do not reject a node that passes here, for bound claims with CSI volumes. Claims that are not
bound yet are not evaluated: their volume can come to be on any node. `addedAffinity` in kube-scheduler's own
configuration is not known. The pod's own rules have two functions, so that the reasons keep their order. A nodeSelector
that does not match is reported before a volume that can't be used. Required node affinity is reported last: a fault of
the node explains more than a rule that the pod's owner wrote on purpose.

Taints: tainttoleration/taint_toleration.go. Which taints a pod tolerates: k8s.io/api core/v1/toleration.go,
component-helpers scheduling/corev1/helpers.go. A taint that a controller adds later is not known. It is stricter than
upstream: a pod that tolerates one of DRAIN_TAINTS would soon have to leave the node again, and the webhook steers no VM
to such a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.api.affinity import (
    METADATA_NAME,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from webhook.core.api.container import parse_int64
from webhook.core.api.node import Node, Taint
from webhook.core.api.pod import PodSpec, Toleration
from webhook.core.api.storage import PersistentVolume
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cache import NodeInfo

_LABEL_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


def why_labels_mismatch(spec: PodSpec, node: NodeInfo) -> Why | None:
    """Reject a node that lacks a label of `spec.nodeSelector`."""
    selector = spec.node_selector
    if selector:
        labels = node.labels
        for key, value in selector.items():
            if labels.get(key) != value:
                return Reason.NODE_SELECTOR_MISMATCH.why(node=node.name, label=f"{key}={value}")
    return None


def why_terms_mismatch(spec: PodSpec, node: NodeInfo) -> Why | None:
    """Reject a node that no term of the pod's required node affinity matches."""
    if matches_node_selector(spec.required_node_affinity, node.labels, node.name):
        return None
    return Reason.NODE_AFFINITY_MISMATCH.why(node=node.name)


def matches_node_selector(selector: NodeSelector | None, labels: Mapping[str, str] | None, name: str | None) -> bool:
    """Whether a term of required node affinity matches a node. None matches every node; zero terms match none.

    Without a name matchFields are not evaluated, as kube-scheduler does for PersistentVolumes (component-helpers
    storage/volume/helpers.go, CheckNodeAffinity).
    """
    if selector is None:
        return True
    return any(_term_matches(term, labels or {}, name) for term in selector.node_selector_terms or ())


def _term_matches(term: NodeSelectorTerm, labels: Mapping[str, str], name: str | None) -> bool:
    """Whether the term matches. An empty term matches nothing.

    An API server rejects a pod with another operator than those here, or with another number of values.
    """
    if term.is_empty or not all(expression_holds(each, labels) for each in term.match_expressions or ()):
        return False
    return name is None or all(field_holds(each, name) for each in term.match_fields or ())


def field_holds(field: NodeSelectorRequirement, name: str) -> bool:
    """Whether the name matches. Every field except metadata.name has an empty value (apimachinery pkg/fields)."""
    value = name if field.key == METADATA_NAME else ""
    return (value in (field.values or ())) == (field.operator == "In")


def expression_holds(expression: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet a requirement.

    None meet one with a value that no label can have: kube-scheduler can't read it. API servers before 1.33 accept it
    (apimachinery pkg/labels/selector.go, NewRequirement).
    """
    actual, values = labels.get(expression.key or ""), expression.values or []
    if not all(map(_LABEL_VALUE.fullmatch, values)):
        return False
    match expression.operator:
        case "In":
            return actual in values
        case "NotIn":
            return actual not in values
        case "Exists":
            return actual is not None
        case "DoesNotExist":
            return actual is None
    have, want = parse_int64(actual or ""), parse_int64("".join(values))
    if have is None or want is None:
        return False
    return have > want if expression.operator == "Gt" else expression.operator == "Lt" and have < want


class ClaimVolume(Struct, frozen=True):
    """A bound claim of the pod, or of a pod that must be on the same node, with its PersistentVolume.

    `served_from`: the node of the share-manager that serves the volume, empty if the share-manager is on none. None for
    a volume that is attached to the pod's own node. `of_one_pod`: whether only one pod at a time may use the claim.
    `being_deleted`: whether the claim is being deleted.
    """

    claim: str
    volume: PersistentVolume
    served_from: str | None = None
    of_one_pod: bool = False
    being_deleted: bool = False


def why_unusable(volumes: Iterable[ClaimVolume], node: NodeInfo) -> Why | None:
    """Return why a volume can't be used on the node; without such a reason, why that is not known."""
    whys = [why for volume in volumes for why in _whys(volume, node)]
    return next((why for why in whys if why.reason.columns.excludes), whys[0] if whys else None)


def _whys(bound: ClaimVolume, node: NodeInfo) -> Iterator[Why]:
    volume, spec = bound.volume, bound.volume.spec
    names = {"volume": volume.metadata.name, "claim": bound.claim, "node": node.name}
    affinity = spec.node_affinity if spec else None
    if affinity and not matches_node_selector(affinity.required, node.labels, None):
        yield Reason.VOLUME_AFFINITY_MISMATCH.why(**names)
    csi = spec.csi if spec else None
    limit = (node.csi_drivers or {}).get(csi.driver or "") if csi else None
    if csi and limit is not None:
        yield Reason.VOLUME_COUNT_UNKNOWN.why(node=node.name, driver=csi.driver, limit=limit, claim=bound.claim)


_AVOIDED: Final = "PreferNoSchedule"
_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")

DRAIN_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/out-of-service",  # Kubernetes removes its pods and detaches its volumes
        "node.cloudprovider.kubernetes.io/shutdown",
        "kubevirt.io/drain",  # KubeVirt migrates its VMs away (configuration.migrations.nodeDrainTaintKey)
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
    }
)
"""Taints of nodes that the cluster is about to lose."""


def why_repelled(tolerations: Iterable[Toleration], node: Node) -> Why | None:
    """Reject a node with one of DRAIN_TAINTS, or a taint NoSchedule or NoExecute that the pod does not tolerate."""
    for taint in node.taints:
        if taint.key in DRAIN_TAINTS:
            return Reason.NODE_LEAVING.why(node=node.metadata.name, taint=taint_text(taint))
    untolerated = find_untolerated(node.taints, tolerations)
    if untolerated is None:
        return None
    return Reason.TAINT_NOT_TOLERATED.why(node=node.metadata.name, taint=taint_text(untolerated))


def why_perhaps_drained(tolerations: Iterable[Toleration], node: Node) -> Why | None:
    """Return the taint NoSchedule or NoExecute that only tolerations without a key cover.

    Such a toleration covers the taint of any drain, and what key a cluster drains by is not known (KubeVirt's
    configuration.migrations.nodeDrainTaintKey).
    """
    taint = find_untolerated(node.taints, [each for each in tolerations if each.key])
    if taint is None:
        return None
    return Reason.TAINT_TOLERATED_WITHOUT_KEY.why(node=node.metadata.name, taint=taint_text(taint))


def count_prefer_no_schedule(node: Node, tolerations: Iterable[Toleration]) -> int:
    """Return how many taints PreferNoSchedule of the node the pod does not tolerate.

    Upstream scores by this count (countIntolerableTaintsPreferNoSchedule). The score has more weight than all that
    preferred node affinity can give.
    """
    return sum(taint.effect == _AVOIDED and not tolerates(tolerations, taint) for taint in node.taints)


def taint_text(taint: Taint) -> str:
    """Return the taint as kubectl writes it: KEY=VALUE:EFFECT, or KEY:EFFECT."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def find_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint NoSchedule or NoExecute that none tolerates (upstream: FindMatchingUntoleratedTaint)."""
    for taint in taints:
        if taint.effect in _REPELLING_EFFECTS and not tolerates(tolerations, taint):
            return taint
    return None


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any toleration tolerates the taint (k8s.io/api core/v1/toleration.go, ToleratesTaint)."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    wanted, actual, operator = toleration.value or "", taint.value or "", toleration.operator or "Equal"
    if operator in ("Equal", "Exists"):
        return operator == "Exists" or wanted == actual
    # Lt and Gt compare decimal integers without leading zeros (KEP-5471).
    have, want = parse_int64(actual), parse_int64(wanted)
    if have is None or want is None or (str(have), str(want)) != (actual, wanted):
        return False
    return have < want if operator == "Lt" else operator == "Gt" and have > want
