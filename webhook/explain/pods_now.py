"""The current pods of a VM or a volume. Explain evaluates the next pod, which starts after the current ones are gone.

The resources of a current pod therefore count as free. A hint names the command for a current pod that is stuck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_APP, LABEL_MIGRATION_JOB_UID, VIRT_LAUNCHER
from webhook.core.api.pod import UNSCHEDULABLE, Pod
from webhook.core.evidence import share_managers
from webhook.core.observe import restart
from webhook.core.observe.vm_status import VMStatus, vm_status_of
from webhook.core.opt_in import OptIn, Policy, opt_in_of
from webhook.core.patch.applied_patch import applied_to, owner_uid
from webhook.core.reasons import Reason
from webhook.core.view import ClusterView
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects.kinds import VIRTUAL_MACHINE


def gone_before(incoming: Pod, namespace: str) -> Callable[[Pod], bool]:
    """Return a function that says whether a pod is gone before `incoming` is created in `namespace`."""
    return partial(_is_gone, incoming, namespace)


def _is_gone(incoming: Pod, namespace: str, pod: Pod) -> bool:
    """A new pod of a VM starts after the old one is gone. In a live migration the VM's other pod stays."""
    if (pod.metadata.namespace or "default") != namespace:
        return False
    meta = incoming.metadata
    if meta.label(LABEL_APP) != VIRT_LAUNCHER or meta.label(LABEL_MIGRATION_JOB_UID) is not None:
        return pod.metadata.name == meta.name
    vm = kubevirt.vm_name(incoming)
    return bool(vm) and pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER and kubevirt.vm_name(pod) == vm


def vm_now(pods: Sequence[Pod], cluster: ClusterReader, policy: Policy) -> VMStatus | None:
    """Return where the VM of these pods is, as `status` shows it; None if no pod runs it, or if it does not opt in."""

    def look(view: ClusterView) -> None:
        for pod in pods:
            namespace = pod.metadata.namespace or ""
            if isinstance(opt_in_of(pod, namespace, view, policy), OptIn):
                share_managers.find_share_managers(pod, namespace, view)

    cluster.ask(look)
    return vm_status_of(pods, cluster.view, policy)


def stuck_hint(pod: Pod, cluster: ClusterReader) -> str | None:
    """Return what to do about a pod that the webhook pinned and that fits no node; None for any other pod."""
    scheduled = pod.status.scheduled if pod.status else None
    written = applied_to(pod, owner_uid(pod.metadata.owner_references))
    if scheduled is None or scheduled.reason != UNSCHEDULABLE or not written.nodes or pod.spec.node_name:
        return None
    why = Reason.VM_STUCK.why(pod=pod.metadata.name, message=scheduled.message or "no reason given")
    free = _restart(kubevirt.vm_name(pod), pod.metadata.namespace or "default", cluster)
    return f"{why.sentence}; the webhook decides again for a new pod: {free}"


def _restart(vm: str, namespace: str, cluster: ClusterReader) -> str:
    found = cluster.lookup(VIRTUAL_MACHINE, vm, namespace)
    if found.items:
        return restart.restart_command(vm, namespace, found.items[0].run_strategy)
    return restart.restart_command(vm, namespace, None) if found.problem else restart.restart_without_owner(vm)
