"""A VM -> VMExplanation: its claims, their share-managers, and for which node the webhook would ask.

Invariant: no pod is guessed. The VM's own rules are named, and neither kube-scheduler's answer nor the webhook's is
foretold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.candidate import Candidate, candidate_of, candidate_of_start
from webhook.core.observe.vm_item import volume_item
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import asked_value
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.view import ClusterView
from webhook.explain.cluster import Cluster
from webhook.explain.explanation import AskedBy, RunningPod, Subject, VMExplanation, VMNow
from webhook.invocation import Invocation
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance
from webhook.objects.kinds import VIRT_LAUNCHER_POD
from webhook.objects.vm_rows import may_run, pods_of_vms
from webhook.objects.vm_rules import hints_of, meta_of, rules_of
from webhook.objects.webhook_settings import WebhookSettings

_NO_USERS: Final = "who else uses the volumes is not known ({problem})"
_NO_PODS: Final = "whether the VM runs, and where, is not known ({problem})"


def explain_vm(
    vm: VirtualMachine | VirtualMachineInstance,
    subject: Subject,
    cluster: Cluster,
    settings: WebhookSettings,
    invocation: Invocation,
) -> VMExplanation:
    """Return the explanation of a VM, which is `subject`. `invocation` begins suggested commands."""
    namespace, name = subject.namespace, subject.name
    meta = meta_of(vm, namespace)
    unlisted = cluster.view.want(VIRT_LAUNCHER_POD, namespace)
    users = cluster.want_users(namespace)
    key = NamespacedName(namespace, name)
    pods = [] if unlisted else pods_of_vms(cluster.view).get(key, [])
    if not unlisted and not pods and may_run(cluster.view, key):
        unlisted = "its VirtualMachineInstance exists, and no pod of it was found"

    def look(view: ClusterView) -> tuple[Candidate, VMStatus | None]:
        policy, at = settings.policy, cluster.view.objects.at
        now = candidate_of(pods, view, policy, at)
        return now or candidate_of_start(meta, vm, view, policy), vm_status_of(pods, view, policy, at)

    candidate, row = cluster.ask(look)
    start, checks = candidate.next_start, rules_of(vm)
    asked, by = asked_value(candidate.annotation, candidate.label, settings.policy)
    why = candidate.not_opted_in
    return VMExplanation(
        object=subject,
        cluster=cluster.origin,
        settings=settings.sentence,
        notes=[
            *settings.notes,
            *([_NO_PODS.format(problem=unlisted)] if unlisted else []),
            *([_NO_USERS.format(problem=users)] if users else []),
            *start.unread,
        ],
        hints=hints_of(vm),
        running=running_pods(pods),
        now=vm_now(row, invocation),
        opt_in=AskedBy(
            opted_in=why is None,
            value=asked,
            by=by.value if asked else None,
            because=str(why) if why else "",
        ),
        claims=[volume_item(volume) for volume in candidate.volumes],
        asks_for=start.nodes,
        checks=checks,
        gains=start.gains,
        reason=start.reason,
        next_start=start.sentence(checks),
    )


def running_pods(pods: Sequence[Pod]) -> list[RunningPod]:
    """Return the unfinished pods of these, as they are shown."""
    return [
        RunningPod(
            name=pod.metadata.name or "",
            phase=pod.status.phase if pod.status else None,
            node=pod.spec.node_name,
            decision=pod.metadata.annotation(ANNOTATION_DECISION),
        )
        for pod in pods
        if not is_finished(pod)
    ]


def vm_now(row: VMStatus | None, invocation: Invocation) -> VMNow | None:
    """Return where the VM of a row is, as it is shown."""
    if row is None:
        return None
    remedy = invocation.remedy_text(row.remedy)
    return VMNow(state=row.state, since=row.since, reason=row.why.reason.code, because=row.why.sentence, remedy=remedy)
