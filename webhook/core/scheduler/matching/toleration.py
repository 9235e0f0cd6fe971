"""Which taints a pod tolerates (k8s.io/api core/v1/toleration.go; component-helpers scheduling/corev1/helpers.go)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from webhook.core.api.node import Taint
from webhook.core.api.pod import Toleration
from webhook.core.api.quantity import parse_int64

_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def find_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint with NoSchedule or NoExecute that no toleration tolerates.

    Upstream: FindMatchingUntoleratedTaint.
    """
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
    """Compare numeric taints (KEP-5471): the values of taint and toleration are decimal integers without leading zeros.

    An API server without the feature rejects a pod with such a toleration, so that the webhook never gets the pod.
    """
    if not (_DECIMAL.fullmatch(actual) and _DECIMAL.fullmatch(wanted)):
        return False
    have, want = parse_int64(actual), parse_int64(wanted)
    if have is None or want is None:
        return False
    return have < want if operator == "Lt" else have > want
