"""The rows of a cluster that was read once: one for each VM, whether it asks for co-scheduling or not, runs or not.

`status` shows those that ask, `candidates` those that do not, and `explain` one with its evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.component_base.errors import UserError, did_you_mean
from webhook.core.api import kubevirt
from webhook.core.api.meta import NamespacedName, ObjectMeta
from webhook.core.api.pod import Pod
from webhook.core.observe.events import latest
from webhook.core.observe.next_start import stated_pod
from webhook.core.observe.remedy import with_message
from webhook.core.observe.vm_state import vm_status_of, without_pod
from webhook.core.observe.vm_status import STOPPED, State, VMStatus
from webhook.core.opt_in import OptIn, Policy, opt_in_of
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.label_selector import Selector
from webhook.objects.cluster import Cluster
from webhook.objects.kinds import EVENT, VIRT_LAUNCHER_POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.kubevirt import AnyVM, hints_of, meta_of

_OVER: Final = ("Succeeded", "Failed")  # kubevirt api/core/v1/types.go, VirtualMachineInstance.IsFinal


class VMRow(Struct, frozen=True, kw_only=True):
    """One VM, as it is shown, with what the row is made of.

    Attributes:
        status: where it is, by its pods; of a VM that does not ask as if it asked.
        not_asked: why it does not ask; None if it asks.
        pod: the one in which it runs; without one, what its objects state of the next.
        described: its VirtualMachine, else its instance; None if neither was read.
        owner: the name of its VirtualMachine; None if it certainly has none.
    """

    status: VMStatus
    not_asked: Why | None
    pod: Pod
    described: AnyVM | None
    owner: str | None

    @property
    def vm(self) -> NamespacedName:
        """Its namespace and name."""
        return NamespacedName(self.status.namespace, self.status.name)

    @property
    def asks(self) -> bool:
        """Whether it runs, waits to run, or may do so, and asks for co-scheduling."""
        return self.status.state != STOPPED and not self.not_asked


def vm_rows(cluster: Cluster, policy: Policy, selector: Selector | None = None) -> list[VMRow]:
    """Return a row for each VM, of those whose pods, or templates, have the labels of the `selector`.

    Raises:
        UserError: the VMs' pods could not be listed.
    """
    rows, started = [], set()
    vms, vmis = cluster.objects.of(VIRTUAL_MACHINE), cluster.objects.of(VIRTUAL_MACHINE_INSTANCE)
    messages = latest(cluster.objects.of(EVENT).values())
    for key, pods in pods_of_vms(cluster).items():
        if all(map(kubevirt.is_finished, pods)):
            continue
        started.add(key)
        chosen = [pod for pod in pods if not selector or selector.matches(pod.metadata.labels or {})]
        if chosen:
            described = vms.get(NamespacedName(key.namespace, owner_of_vm(cluster, key) or "")) or vmis.get(key)
            row = vm_row(key, chosen, described, cluster, policy)
            rows.append(replace(row, status=with_message(row.status, messages.get(key, ""))))
    every: dict[NamespacedName, AnyVM] = {**vmis, **vms}
    for key, each in every.items():
        if key not in started and (not selector or selector.matches(meta_of(each, key.namespace).labels or {})):
            rows.append(vm_row(key, (), each, cluster, policy))
    return rows


def vm_row(vm: NamespacedName, pods: Sequence[Pod], described: AnyVM | None, cluster: Cluster, policy: Policy) -> VMRow:
    """Return the row of one VM: by its pods, or without one by what was read of it."""
    hints = hints_of(described) if described else []
    status = vm_status_of(pods, cluster, policy, cluster.objects.at, even_unasked=True)
    if status:
        pod = next(each for each in pods if (each.metadata.name or "") == status.pod)
    else:
        meta = meta_of(described, vm.namespace) if described else ObjectMeta(name=vm.name, namespace=vm.namespace)
        pod = stated_pod(meta, described.claims if described else ())
        unlisted, started = cluster.objects.unread(VIRT_LAUNCHER_POD), may_run(cluster, vm)
        status = without_pod(pod, cluster, policy, State.UNKNOWN if started or unlisted else STOPPED)
        if started and not unlisted:
            why = Reason.VM_POD_NOT_FOUND.why()
            hints, status = [why.sentence, *hints], replace(status, reason=why.reason.code, because=why.sentence)
    opt_in = opt_in_of(pod, vm.namespace, cluster, policy)
    return VMRow(
        status=replace(status, hints=hints),
        not_asked=None if isinstance(opt_in, OptIn) else opt_in,
        pod=pod,
        described=described,
        owner=owner_of_vm(cluster, vm),
    )


def chosen(rows: Sequence[VMRow], namespace: str, names: Collection[str]) -> list[VMRow]:
    """Return the rows of the VMs in this namespace, empty for all, and of these names, none for all."""
    return [row for row in rows if namespace in ("", row.vm.namespace) and (not names or row.vm.name in names)]


def where_else(name: str, namespace: str, rows: Sequence[VMRow]) -> str:
    """Return where a VM is that is not in this namespace, or the name that the user may have meant, to end a sentence.

    It is empty if neither is known.
    """
    others = sorted(row.vm.namespace for row in rows if row.vm.name == name and namespace not in ("", row.vm.namespace))
    if others:
        return f"; there is one in namespace {others[0]}: -n {others[0]}"
    return did_you_mean(name, {row.vm.name for row in rows if namespace in ("", row.vm.namespace)})


def asking(rows: Sequence[VMRow]) -> list[VMStatus]:
    """Return where the VMs are that run, or may run, and ask for co-scheduling."""
    return [row.status for row in rows if row.asks]


def pods_of_vms(cluster: Cluster) -> Mapping[NamespacedName, Sequence[Pod]]:
    """Return the virt-launcher pods of each VM.

    Raises:
        UserError: the VMs' pods could not be listed.
    """
    unlisted = cluster.objects.unread(VIRT_LAUNCHER_POD)
    if unlisted:
        raise UserError(
            f"{cluster.origin}: {VIRT_LAUNCHER_POD.title}: {unlisted}; expected to list them: check your permissions, "
            "--namespace and --context; a bundle has them if its maker may list pods"
        )
    return cluster.virt_launchers_of_vms()


def owner_of_vm(cluster: Cluster, vm: NamespacedName) -> str | None:
    """Return the VirtualMachine that owns the VM, None if none does; without its instance, the one of its name."""
    vmi = cluster.objects.get(VIRTUAL_MACHINE_INSTANCE, vm.name, vm.namespace)
    return vmi.virtual_machine if vmi else vm.name


def may_run(cluster: Cluster, vm: NamespacedName) -> bool:
    """Whether the VM has a VirtualMachineInstance that is not over: KubeVirt starts it, or its pod was not read."""
    vmi = cluster.objects.get(VIRTUAL_MACHINE_INSTANCE, vm.name, vm.namespace)
    if vmi:
        return (vmi.status.phase if vmi.status else None) not in _OVER
    found = cluster.objects.get(VIRTUAL_MACHINE, vm.name, vm.namespace)
    return bool(found and found.status and found.status.created)
