"""kube-scheduler's TaintToleration plugin (pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go).

Which taints a pod tolerates: k8s.io/api core/v1/toleration.go, component-helpers scheduling/corev1/helpers.go.
Invariant: the plugin does not reject a node that passes here. A taint that a controller adds later is not known. It is
stricter than upstream: a pod that tolerates one of DRAIN_TAINTS would soon have to leave the node again, and the
webhook steers no VM to such a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.core.api.container import parse_int64
from webhook.core.api.node import Node, Taint
from webhook.core.api.pod import Toleration
from webhook.core.reasons import Reason, Why

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
