"""The VirtualMachineInstance of a virt-launcher pod, which of its pods runs the VM, its node selector and migration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from webhook.core.api.meta import LABEL_KEY_MAX_CHARS, ApiType, OwnerReference
from webhook.core.api.pod import Pod, WatchedPod

LABEL_APP: Final = "kubevirt.io"
LABEL_MIGRATION_JOB_UID: Final = "kubevirt.io/migrationJobUID"  # on the target pod of a live migration
"""The node on which the VM runs. KubeVirt copies the VirtualMachineInstance's labels to its pods, so that the target of
a live migration has the name of the source node (pkg/virt-controller/watch/vmi/lifecycle.go)."""
ANNOTATION_MIGRATION: Final = "kubevirt.io/migrationJobName"  # on the same pod: the name of the migration
ANNOTATION_RECEIVER: Final = "kubevirt.io/create-migration-target"  # "true" on a pod that receives another cluster's VM
ANNOTATION_PROVISIONING: Final = "kubevirt.io/ephemeral-provisioning"  # "true" on a pod that only provisions the disk
HOSTNAME: Final = "kubernetes.io/hostname"
MIGRATION_CPU_MODEL: Final = "cpu-model-migration.node.kubevirt.io/"
CPU_FEATURE: Final = "cpu-feature.node.kubevirt.io/"
CPU_VENDOR: Final = "cpu-vendor.node.kubevirt.io/"
VIRT_LAUNCHER: Final = "virt-launcher"
HOTPLUG_DISK: Final = "hotplug-disk"  # pkg/virt-controller/services/template.go: the label of an attachment pod
VMI_KIND: Final = "VirtualMachineInstance"
_FINISHED: Final = ("Succeeded", "Failed")
# The names of webhook.core.api.migration: next_name and migration_object.
_TOGETHER: Final = re.compile(r"-(reunite-\d+|together-[a-z0-9]+)$")
# pkg/virt-controller/services/nodeselectorrenderer.go: what a VM needs of a node's hardware and KubeVirt version.
_ARCHITECTURE: Final = "kubernetes.io/arch"
_KUBEVIRT_DOMAIN: Final = "kubevirt.io"


class VirtualMachineInstanceRef(NamedTuple):
    """A VirtualMachineInstance, by its namespace and its uid: KubeVirt labels each of its pods with the uid."""

    namespace: str
    uid: str


class MigrationState(ApiType):
    """VirtualMachineInstanceMigrationState, in part.

    A VirtualMachineInstance has that of its newest migration, also when that is deleted. A migration has its own, from
    its end on.
    """

    migration_uid: str | None = None
    source_node: str | None = None
    target_node: str | None = None
    end_timestamp: str | None = None
    abort_requested: bool | None = None
    failure_reason: str | None = None


def owner(pod: WatchedPod) -> OwnerReference | None:
    """Return the VirtualMachineInstance that owns the pod, None if none does."""
    return pod.metadata.owner(VMI_KIND)


def vm_name(pod: Pod) -> str:
    """Return the VirtualMachineInstance's name, which is also the VM's; the pod's name if nothing owns the pod."""
    found = owner(pod)
    return (found.name if found else None) or pod.metadata.name or ""


def is_finished(pod: Pod) -> bool:
    """Whether the pod has ended, so that no VM runs in it."""
    return pod.status is not None and pod.status.phase in _FINISHED


def running_order(pod: Pod, node: str | None = None) -> tuple[bool, bool, bool, str, str]:
    """Return a sort key for the pods of one VM. The VM runs, or will run, in the pod with the highest key.

    The VM runs in the pod on `node`, if its VirtualMachineInstance names that (status.nodeName). The target pod of a
    live migration that failed can stay Running for hours. Without `node` the newer of two pods on nodes counts, as the
    target of a live migration is. A restart has an old pod that terminates. A pod on a node comes before a pod that is
    on no node yet.
    """
    meta = pod.metadata
    return (
        node is not None and pod.spec.node_name == node,
        not meta.deletion_timestamp,
        bool(pod.spec.node_name),
        meta.creation_timestamp or "",
        meta.name or "",
    )


def placing_node_selector(node_selector: Mapping[str, str] | None, migration: str | None = None) -> dict[str, str]:
    """Return the part of a pod's node selector that a user chose. KubeVirt asks for the other labels by itself.

    The VM's own node selector is in it, and spec.addedNodeSelector of the migration that created the pod. `migration`
    is the name of that migration. If it is one of `reunite` or of its list, the hostname is left out. They name a node
    because of the share-managers, not because a user wants the VM there.
    """
    together = is_together(migration)
    labels = (node_selector or {}).items()
    users = ((key, wanted) for key, wanted in labels if not is_kubevirts(key[:LABEL_KEY_MAX_CHARS]))
    return {key: wanted for key, wanted in users if not (together and key == HOSTNAME)}


def is_together(migration: str | None) -> bool:
    """Whether a migration of this name is one of `reunite`, or one of its list."""
    return _TOGETHER.search(migration or "") is not None


@lru_cache(maxsize=4096)  # a VM of a host model has a hundred labels, and all VMs have the same ones
def is_kubevirts(label: str) -> bool:
    """Whether KubeVirt asks for this label of a node by itself."""
    domain, slash, _ = label.partition("/")
    return label == _ARCHITECTURE or (bool(slash) and f".{domain}".endswith(f".{_KUBEVIRT_DOMAIN}"))


def start_node_selector(pod: Pod) -> dict[str, str]:
    """Return the node selector that KubeVirt would give the VM of this pod at a start.

    A live migration adds the node that it names, and the CPU of the node that the VM left
    (pkg/virt-controller/watch/migration/migration.go, prepareNodeSelectorForHostCpuModel). Only a VM of a host model
    gets a CPU model by that, and features with it.
    """
    selector = pod.spec.node_selector or {}
    if pod.metadata.label(LABEL_MIGRATION_JOB_UID) is None:
        return dict(selector)
    host_model = any(label.startswith(MIGRATION_CPU_MODEL) for label in selector)
    added = (HOSTNAME, MIGRATION_CPU_MODEL, CPU_VENDOR, *([CPU_FEATURE] if host_model else ()))
    return {label: value for label, value in selector.items() if not label.startswith(added)}
