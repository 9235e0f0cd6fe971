"""kube-scheduler's NodeDeclaredFeatures plugin (pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go).

A filter by default since Kubernetes 1.36. It rejects nodes that do not declare the features that a pod needs
(status.declaredFeatures). component-helpers, nodedeclaredfeatures/features, infers these features from the pod: up to
1.37 from three parts of a pod that KubeVirt does not render. Other webhooks can add them.
Invariant: the plugin rejects no node for a pod that passes here. What the nodes declare is not known.
"""  # noqa: E501 - the name of the file

from __future__ import annotations

from webhook.core.api.pod import Pod
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState


def pre_filter(cycle: CycleState) -> Why | None:
    """Return which field of the pod may need a feature of its node."""
    needed = _needed(cycle.pod)
    return Reason.NODE_FEATURES.why(field=needed) if needed else None


def _needed(pod: Pod) -> str | None:
    """Return the field that may need a feature; None if no field does."""
    spec = pod.spec
    if spec.host_network and spec.host_users is False:
        return "hostUsers: false beside hostNetwork"
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        if container.restart_policy_rules:
            return "restartPolicyRules"
        if any(mount.bind_mount_options for mount in container.volume_mounts or ()):
            return "bindMountOptions"
    return None
