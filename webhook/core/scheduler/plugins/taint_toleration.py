"""kube-scheduler's TaintToleration filter and score (plugins/tainttoleration/taint_toleration.go)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from webhook.core.api.node import Node, Taint
from webhook.core.api.pod import Pod, Toleration
from webhook.core.api.quantity import parse_int64

_AVOIDED: Final = "PreferNoSchedule"
_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def reluctance(node: Node, pod: Pod) -> int:
    """How many taints of a node make the scheduler avoid it for this pod, where it can.

    Its TaintToleration score (plugins/tainttoleration/taint_toleration.go) outweighs all that nodeAffinity can give.
    """
    taints = (node.spec.taints or ()) if node.spec else ()
    return sum(taint.effect == _AVOIDED and not tolerates(pod.spec.tolerations or (), taint) for taint in taints)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether any toleration tolerates the taint (k8s.io/api core/v1/toleration.go, ToleratesTaint)."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    wanted, actual = toleration.value or "", taint.value or ""
    match toleration.operator or "Equal":
        case "Equal":
            return wanted == actual
        case "Exists":
            return True
        case "Lt" | "Gt" as operator:
            return _compares(actual, operator, wanted)
    return False


def _compares(actual: str, operator: str, wanted: str) -> bool:
    """Numeric taints (KEP-5471): the taint's value against the toleration's, decimal integers without leading zeros.

    An API server without the feature refuses such a pod itself, so one that reached us runs where it is on.
    """
    if not (_DECIMAL.fullmatch(actual) and _DECIMAL.fullmatch(wanted)):
        return False
    have, want = parse_int64(actual), parse_int64(wanted)
    if have is None or want is None:
        return False
    return have < want if operator == "Lt" else have > want


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
