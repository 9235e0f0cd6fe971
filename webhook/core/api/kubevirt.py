"""VirtualMachineInstance <- its pods: whose a virt-launcher pod is, and which of several goes on running the VM."""

from __future__ import annotations

from typing import Final

from webhook.core.api.meta import OwnerReference
from webhook.core.api.pod import Pod

VMI_KIND: Final = "VirtualMachineInstance"
_FINISHED: Final = ("Succeeded", "Failed")


def owner(pod: Pod) -> OwnerReference | None:
    """The VirtualMachineInstance that a pod is of."""
    return next((each for each in pod.metadata.owner_references or () if each.kind == VMI_KIND), None)


def name(pod: Pod) -> str:
    """The VirtualMachineInstance's name, which is its VM's too; the pod's where nothing owns it."""
    found = owner(pod)
    return (found.name if found else None) or pod.metadata.name or ""


def is_finished(pod: Pod) -> bool:
    """Whether the pod has ended: a VM that ran in it does not any more."""
    return pod.status is not None and pod.status.phase in _FINISHED


def standing(pod: Pod) -> tuple[bool, bool, str, str]:
    """The higher, the likelier it is the pod that its VM runs in from now on.

    A live migration has two pods on two nodes, and the newer one is its target; a restart has an old one that
    terminates. A pod on no node yet says less than one that is on a node.
    """
    meta = pod.metadata
    return (
        not meta.deletion_timestamp,
        bool(pod.spec.node_name),
        meta.creation_timestamp or "",
        meta.name or "",
    )


LABEL_APP: Final = "kubevirt.io"
LABEL_MIGRATION_JOB_UID: Final = "kubevirt.io/migrationJobUID"  # on the target pod of a live migration
VIRT_LAUNCHER: Final = "virt-launcher"
