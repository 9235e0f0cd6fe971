"""kube-scheduler's NodeAffinity plugin (pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go).

Invariant: the plugin does not reject a node that passes both filters here. `addedAffinity` in kube-scheduler's own
configuration is not known. The plugin has two filters, so that the reasons keep their order. A nodeSelector that does
not match is reported before a volume that can't be used. Required node affinity is reported last: a fault of the node
explains more than a rule that the pod's owner wrote on purpose.
"""

from __future__ import annotations

from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.matching.node_selector import matches_node_selector
from webhook.core.scheduler.state.node_info import NodeInfo


def pre_filter(cycle: CycleState) -> Why | None:
    """Return that a required term of the pod has `matchFields`: the webhook could not tell it from its own."""
    required = cycle.pod.spec.required_node_affinity
    terms = (required.node_selector_terms if required else None) or ()
    return Reason.MATCH_FIELDS.why() if any(term.match_fields for term in terms) else None


def filter_by_labels(cycle: CycleState, node: NodeInfo) -> Why | None:
    """Reject a node that lacks a label of `spec.nodeSelector`."""
    selector = cycle.pod.spec.node_selector
    if selector:
        labels = node.labels
        for key, value in selector.items():
            if labels.get(key) != value:
                return Reason.NODE_SELECTOR_MISMATCH.why(node=node.name, label=f"{key}={value}")
    return None


def filter_node(cycle: CycleState, node: NodeInfo) -> Why | None:
    """Reject a node that no term of the pod's required node affinity matches."""
    required = cycle.pod.spec.required_node_affinity
    if required is None or matches_node_selector(required, node.labels, node.name):
        return None
    return Reason.NODE_AFFINITY_MISMATCH.why(node=node.name)
