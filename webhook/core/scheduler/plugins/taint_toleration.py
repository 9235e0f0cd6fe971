"""kube-scheduler's TaintToleration filter and score (plugins/tainttoleration/taint_toleration.go)."""

from __future__ import annotations

from typing import Final

from webhook.core.api.node import Node, Taint
from webhook.core.api.pod import Pod
from webhook.core.scheduler.matching.toleration import tolerates

_AVOIDED: Final = "PreferNoSchedule"


def reluctance(node: Node, pod: Pod) -> int:
    """How many taints of a node make the scheduler avoid it for this pod, where it can.

    Its TaintToleration score (plugins/tainttoleration/taint_toleration.go) outweighs all that nodeAffinity can give.
    """
    taints = (node.spec.taints or ()) if node.spec else ()
    return sum(taint.effect == _AVOIDED and not tolerates(pod.spec.tolerations or (), taint) for taint in taints)


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
