"""kube-scheduler's NodeAffinity plugin (pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go).

Invariant: the plugin does not reject a node that passes both functions here. `addedAffinity` in kube-scheduler's own
configuration is not known. There are two functions, so that the reasons keep their order. A nodeSelector that does
not match is reported before a volume that can't be used. Required node affinity is reported last: a fault of the node
explains more than a rule that the pod's owner wrote on purpose.
"""

from __future__ import annotations

from webhook.core.api.pod import PodSpec
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.matching.node_selector import matches_node_selector
from webhook.core.scheduler.state.node_info import NodeInfo


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
