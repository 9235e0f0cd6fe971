"""The VMs without a pod: what each would gain, as its objects say.

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
from webhook.core.observe.candidate import candidate_of_start
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.objects.kinds import VIRTUAL_MACHINE
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import may_run, pods_of_vms
from webhook.objects.vm_rules import hints_of, meta_of

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
    objects, items = cluster.objects, []
    for key, vm in objects.of(VIRTUAL_MACHINE).items():
        meta = meta_of(vm, key.namespace)
        if key in started or namespace not in ("", key.namespace):
            continue
        if selector is not None and not selector.matches(meta.labels or {}):
            continue
        candidate, notes = candidate_of_start(meta, vm, cluster, policy), hints_of(vm)
        if may_run(cluster, key):
            candidate, notes = replace(candidate, state=State.UNKNOWN), [_NO_POD, *notes]
        items += [candidate_item(candidate, key.name, vm, notes)] if candidate.has_share_manager else []
    unreadable = {
        key: f"{key.namespace}/{key.name}: {'; '.join(error.problems)}"
        for (kind, key), error in objects.unreadable.items()
        if kind == VIRTUAL_MACHINE.title and key not in started and namespace in ("", key.namespace)
    }
    return StoppedVMs(items, unreadable)
