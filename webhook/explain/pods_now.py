"""The pods that a VM or a volume has now, beside the one that is explained: the next one of it.

They are gone before that is made, so that their room is free; and one that is stuck has to be freed by somebody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from webhook.core.api import kubevirt
from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.api.pod import UNSCHEDULABLE, Pod
from webhook.core.observe import restart
from webhook.core.patch.applied_patch import from_annotation
from webhook.core.reasons import ANNOTATION_APPLIED_PATCH, Reason
from webhook.explain.api import names
from webhook.explain.sources.cluster import Cluster


def gone_before(newcomer: Pod, namespace: str) -> Callable[[Pod], bool]:
    """Whether a pod is gone by the time that `incoming_pod` is made."""
    return partial(_is_gone, newcomer, namespace)


def _is_gone(newcomer: Pod, namespace: str, pod: Pod) -> bool:
    """Pods of one VM (but for live migrations, which are not ours), or of one name, follow one another."""
    if (pod.metadata.namespace or "default") != namespace:
        return False
    if newcomer.metadata.label(LABEL_APP) != VIRT_LAUNCHER:
        return pod.metadata.name == newcomer.metadata.name
    vm = kubevirt.vm_name(newcomer)
    return bool(vm) and pod.metadata.label(LABEL_APP) == VIRT_LAUNCHER and kubevirt.vm_name(pod) == vm


def stuck(pod: Pod, cluster: Cluster) -> str | None:
    """What to do about a pod that we have pinned, and that kube-scheduler finds no node for; None for any other."""
    told = pod.status.scheduled if pod.status else None
    written = from_annotation(pod.metadata.annotation(ANNOTATION_APPLIED_PATCH))
    if told is None or told.reason != UNSCHEDULABLE or not written.nodes or pod.spec.node_name:
        return None
    why = Reason.VM_STUCK.why(pod=pod.metadata.name, message=told.message or "no reason given")
    free = _restart(kubevirt.vm_name(pod), pod.metadata.namespace or "default", cluster)
    return f"{why.sentence}; a new pod is decided on by what is there then: {free}"


def _restart(vm: str, namespace: str, cluster: Cluster) -> str:
    found = cluster.lookup(names.VIRTUAL_MACHINE, vm, namespace)
    if found.items:
        return restart.restart_command(vm, namespace, restart.run_strategy(found.items[0].value.get("spec") or {}))
    return restart.restart_command(vm, namespace, None) if found.problem else restart.restart_without_owner(vm)
