"""A VM -> VMExplanation: its row, with the evidence for its next start.

Invariant: no pod is guessed. The VM's own rules are named, and neither kube-scheduler's answer nor the webhook's is
foretold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.vm_item import VMItem
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.core.view import ClusterView
from webhook.explain.explanation import RunningPod, Subject, VMExplanation
from webhook.invocation import Invocation
from webhook.objects.cluster import Cluster
from webhook.objects.kinds import VIRT_LAUNCHER_POD
from webhook.objects.kubevirt import AnyVM
from webhook.objects.vm_rows import pods_of_vms, vm_row
from webhook.objects.webhook_settings import WebhookSettings
from webhook.vms.item import item_of, with_next_start

_NO_USERS: Final = "who else uses the volumes is not known ({problem})"
_NO_PODS: Final = "whether the VM runs, and where, is not known ({problem})"


def explain_vm(
    vm: AnyVM, subject: Subject, cluster: Cluster, settings: WebhookSettings, invocation: Invocation
) -> VMExplanation:
    """Return the explanation of a VM, which is `subject`. `invocation` begins suggested commands."""
    key = NamespacedName(subject.namespace, subject.name)
    unlisted = cluster.want(VIRT_LAUNCHER_POD, namespace=key.namespace)
    users = cluster.want_users(key.namespace)
    pods = [] if unlisted else pods_of_vms(cluster).get(key, [])

    def look(view: ClusterView) -> VMItem:
        row = vm_row(key, pods, vm, cluster, settings.policy)
        row = replace(row, may_run=False) if unlisted else row
        return with_next_start(item_of(row, view, invocation), row, view, settings.policy)

    item = cluster.ask(look)
    unread = item.next_start.unread if item.next_start else ()
    return VMExplanation(
        object=subject,
        cluster=cluster.origin,
        settings=settings.sentence,
        notes=[
            *settings.notes,
            *([_NO_PODS.format(problem=unlisted)] if unlisted else []),
            *([_NO_USERS.format(problem=users)] if users else []),
            *unread,
        ],
        hints=item.hints,
        running=running_pods(pods),
        vm=item,
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
