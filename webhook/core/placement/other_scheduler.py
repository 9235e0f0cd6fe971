"""take_over(): TakeOver | Leave for a virt-launcher pod whose spec.schedulerName names another scheduler.

kube-scheduler places only the pods that name it (pkg/scheduler/eventhandlers.go, responsibleForPod). So a pod stays
Pending if the scheduler that it names is gone. The API server sends these pods only with
manifests/components/take-over-scheduler. It also sends targets of live migrations, and pods of VMs without the
annotation, because they would wait, too. Invariants: the webhook replaces only the names that the operator listed;
nothing here raises.
"""

from __future__ import annotations

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.pod import DEFAULT_SCHEDULER, Pod
from webhook.core.decision import Leave, TakeOver
from webhook.core.opt_in import Policy
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView


def take_over(pod: Pod, _namespace: str, _view: ClusterView, policy: Policy) -> Leave:
    """Return the decision for a pod that is being created. Never raises."""
    if pod.metadata.label(LABEL_APP) != VIRT_LAUNCHER:
        return Leave(why=Reason.NOT_VIRT_LAUNCHER.why())
    if pod.spec.node_name:
        return Leave(why=Reason.NODE_ALREADY_SET.why(node=pod.spec.node_name))
    scheduler, into = pod.spec.scheduler_name or DEFAULT_SCHEDULER, policy.scheduler_name
    if scheduler not in policy.taken_over:
        return Leave(why=Reason.SCHEDULER_NOT_LISTED.why(scheduler=scheduler))
    reason = Reason.AUDIT_TAKE_OVER if policy.audit else Reason.SCHEDULER_TAKEN_OVER
    why = reason.why(scheduler=scheduler, into=into)
    return TakeOver(why=why, scheduler_name=None if policy.audit else into)
