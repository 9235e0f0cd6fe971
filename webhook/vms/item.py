"""A VM's row -> the VMItem that is shown."""

from __future__ import annotations

from msgspec.structs import replace

from webhook.core import refs
from webhook.core.observe.next_start import next_start_of, opt_in_change
from webhook.core.observe.remedy import owner_of
from webhook.core.observe.vm_item import STOPPED, ItemMetadata, VMItem, vm_item, volume_item
from webhook.core.observe.vm_status import State
from webhook.core.observe.vm_volumes import volumes_of
from webhook.core.opt_in import Policy, asked_value, label_of
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import ClusterView
from webhook.invocation import Invocation
from webhook.objects.kubevirt import VirtualMachine, hints_of, rules_of, shares_by_virtiofs
from webhook.objects.vm_rows import VMRow

_NO_POD = "whether the VM runs is not known: its VirtualMachineInstance exists, and no pod of it was found"


def item_of(row: VMRow, view: ClusterView, invocation: Invocation) -> VMItem:
    """Return the VM as it is now. `invocation` begins and ends the command that prints how."""
    hints = [*([_NO_POD] if row.may_run else []), *(hints_of(row.described) if row.described else [])]
    status = row.status
    if status is None:
        volumes = [volume_item(volume) for volume in volumes_of(row.pod, view)]
        metadata = ItemMetadata(namespace=row.vm.namespace, name=row.vm.name)
        return VMItem(
            metadata=metadata,
            namespace=row.vm.namespace,
            name=row.vm.name,
            state=State.UNKNOWN if row.may_run else STOPPED,
            volumes=volumes,
            hints=hints,
        )
    return vm_item(status, invocation.line, hints)


def with_next_start(item: VMItem, row: VMRow, view: ClusterView, policy: Policy) -> VMItem:
    """Return the item with what the webhook would ask for at the VM's next start, and how it is opted in."""
    annotation = row.pod.metadata.annotation(ANNOTATION_CO_SCHEDULE)
    label = label_of(view.get(refs.namespace(row.vm.namespace))) if annotation is None else None
    asked, by = asked_value(annotation, label, policy)
    described = row.described
    checks = rules_of(described) if described else ["the VM's own rules, which were not read"]
    start = next_start_of(row.pod, view, checks)
    owner = owner_of(described) if isinstance(described, VirtualMachine) else ""
    change, no_change = opt_in_change(row.not_asked, row.owner, owner, row.vm.namespace)
    needs = None if described is None or start.alone is None else not start.alone
    return replace(
        item,
        asked=asked or "",
        asked_by=by.name.lower() if asked else "",
        not_asked=str(row.not_asked or ""),
        next_start=start,
        needs_share_manager=True if described and shares_by_virtiofs(described) else needs,
        change=change,
        no_change=no_change,
    )
