"""The VMs without a pod: what each would gain, by the pod that KubeVirt would create from its VirtualMachine.

A VM of which all pods are finished has no pod. Invariant: a VM is called stopped only if nothing says that it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
from webhook.core.view import NeedObjects
from webhook.explain.api import names
from webhook.explain.api.fields import field_at
from webhook.explain.derive.virt_launcher import derive_virt_launcher
from webhook.explain.sources.manifests_reader import ManifestsReader
from webhook.objects.documents import BadDocument, Document
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import pods_of_vms

_VM: Final = names.VIRTUAL_MACHINE
_VMI: Final = names.VIRTUAL_MACHINE_INSTANCE
_OVER: Final = ("Succeeded", "Failed")  # kubevirt api/core/v1/types.go, VirtualMachineInstance.IsFinal
_NO_POD: Final = "whether the VM runs is not known: its VirtualMachineInstance exists, and no pod of it was found"


class StoppedVMs(Struct, frozen=True):
    """The VMs without a pod that have a share-manager; and for each VirtualMachine that can't be read, a sentence."""

    items: Sequence[CandidateItem]
    unreadable: dict[NamespacedName, str]


def why_not_known(cluster: Manifests) -> str:
    """Return why it is not known which VMs are stopped; empty if it is known."""
    return cluster.objects.problem(_VM.api_version, _VM.kind) or ""


def stopped_vms(cluster: Manifests, policy: Policy, namespace: str, selector: Selector | None) -> StoppedVMs:
    """Return the VMs without a pod.

    Args:
        cluster: what was read.
        policy: the settings of the webhook.
        namespace: of the VMs; empty for all.
        selector: the labels that the template of each VM must have.
    """
    started = {key for key, pods in pods_of_vms(cluster).items() if not all(map(is_finished, pods))}
    reader, vmis = ManifestsReader(cluster, ""), cluster.objects.documents(_VMI.api_version, _VMI.kind)
    items, unreadable = [], {}
    for key, document in cluster.objects.documents(_VM.api_version, _VM.kind).items():
        if key in started or namespace not in ("", key.namespace):
            continue
        try:
            pod, notes = _next_pod(document, reader, key.namespace)
        except BadDocument as error:
            unreadable[key] = f"{key.namespace}/{key.name}: {'; '.join(error.problems)}"
            continue
        candidate = None
        if selector is None or selector.matches(pod.metadata.labels or {}):
            candidate = candidate_of_start(pod, cluster, policy)
        assert not isinstance(candidate, NeedObjects)  # noqa: S101 - for the type checker: everything was read
        if candidate and _has_vmi(document, vmis.get(key)):
            candidate, notes = replace(candidate, state=State.UNKNOWN), [_NO_POD, *notes]
        items += [candidate_item(candidate, key.name, notes)] if candidate else []
    return StoppedVMs(items, unreadable)


def _next_pod(vm: Document, reader: ManifestsReader, namespace: str) -> tuple[Pod, list[str]]:
    """Return the pod of the next start of a VirtualMachine, and what it lacks. Raises BadDocument for a wrong type."""
    derived = derive_virt_launcher(vm, reader, namespace)
    return Document(vm.place, derived.pod).read(Pod), [*derived.hints, *derived.notes]


def _has_vmi(vm: Document, vmi: Document | None) -> bool:
    """Whether the VM has a VirtualMachineInstance that is not over: KubeVirt starts it, or files lack its pod."""
    if vmi:
        return field_at(vmi.value, "status", "phase") not in _OVER
    return field_at(vm.value, "status", "created") is True
