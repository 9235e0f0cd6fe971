"""The VMs without a pod: what each would gain, by the pod that KubeVirt would create from its VirtualMachine.

A VM of which all pods are finished has no pod. Invariant: a VM is called stopped only if nothing says that it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.candidates.report import CandidateItem, candidate_item
from webhook.core.api.kubevirt import is_finished
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe.candidate import candidate_of_start
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.explain.derive.virt_launcher import derive_virt_launcher
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects.api.kubevirt import VirtualMachine, VirtualMachineInstance
from webhook.objects.kinds import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import pods_of_vms

_OVER: Final = ("Succeeded", "Failed")  # kubevirt api/core/v1/types.go, VirtualMachineInstance.IsFinal
_NO_POD: Final = "whether the VM runs is not known: its VirtualMachineInstance exists, and no pod of it was found"


class StoppedVMs(Struct, frozen=True):
    """The VMs without a pod that have a share-manager; and for each VirtualMachine that can't be read, a sentence."""

    items: Sequence[CandidateItem]
    unreadable: dict[NamespacedName, str]


def why_not_known(cluster: Manifests) -> str:
    """Return why it is not known which VMs are stopped; empty if it is known."""
    return cluster.objects.problem(VIRTUAL_MACHINE)


def stopped_vms(cluster: Manifests, policy: Policy, namespace: str, selector: Selector | None) -> StoppedVMs:
    """Return the VMs without a pod.

    Args:
        cluster: what was read.
        policy: the settings of the webhook.
        namespace: of the VMs; empty for all.
        selector: the labels that the template of each VM must have.
    """
    started = {key for key, pods in pods_of_vms(cluster).items() if not all(map(is_finished, pods))}
    reader, objects, items = ClusterReader(cluster, "", policy.longhorn_namespace), cluster.objects, []
    for key, vm in objects.of(VIRTUAL_MACHINE).items():
        if key in started or namespace not in ("", key.namespace):
            continue
        pod, notes = _next_pod(vm, reader, key.namespace)
        candidate = None
        if selector is None or selector.matches(pod.metadata.labels or {}):
            candidate = candidate_of_start(pod, cluster, policy)
        if candidate and _has_vmi(vm, objects.get(VIRTUAL_MACHINE_INSTANCE, key.name, key.namespace)):
            candidate, notes = replace(candidate, state=State.UNKNOWN), [_NO_POD, *notes]
        items += [candidate_item(candidate, key.name, notes)] if candidate else []
    unreadable = {
        key: f"{key.namespace}/{key.name}: {'; '.join(error.problems)}"
        for (kind, key), error in objects.unreadable.items()
        if kind == VIRTUAL_MACHINE.title and key not in started and namespace in ("", key.namespace)
    }
    return StoppedVMs(items, unreadable)


def _next_pod(vm: VirtualMachine, reader: ClusterReader, namespace: str) -> tuple[Pod, list[str]]:
    """Return the pod of the next start of a VirtualMachine, and what it lacks."""
    derived = derive_virt_launcher(vm, reader, namespace)
    return msgspec.convert(derived.pod, Pod), [*derived.hints, *derived.notes]


def _has_vmi(vm: VirtualMachine, vmi: VirtualMachineInstance | None) -> bool:
    """Whether the VM has a VirtualMachineInstance that is not over: KubeVirt starts it, or files lack its pod."""
    if vmi:
        return (vmi.status.phase if vmi.status else None) not in _OVER
    return bool(vm.status and vm.status.created)
