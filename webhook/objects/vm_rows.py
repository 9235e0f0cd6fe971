"""The VMs of a cluster that was read once: their rows, their pods, and the settings that count for them."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.core.api import kubevirt
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT
from webhook.core.api.longhorn import SHARE_MANAGER as COMPONENT
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.live_migration.kubevirt import minor_version
from webhook.core.observe import vm_status
from webhook.core.observe.misplaced import misplaced_in
from webhook.core.observe.reunite_messages import latest, with_messages
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import OptInAll, Policy, opt_in_all_of
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.objects.api.storage import LONGHORN_VERSION
from webhook.objects.api.webhooks import CONFIGURATION
from webhook.objects.documents import BadDocument
from webhook.objects.kinds import (
    EVENT,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SETTING,
    SHARE_MANAGER,
    SHARE_MANAGER_POD,
    VIRT_LAUNCHER_POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    WEBHOOK_CONFIGURATION,
)
from webhook.objects.manifests import Manifests

_GANESHA_6: Final = (1, 8)  # the first Longhorn that has it: longhorn issue 9614
_DANGER: Final = (
    "serve NFS with a Ganesha before 6. Without free memory on their node, a VM and its share-manager can block each "
    "other; expected Longhorn 1.8 or newer: docs/concepts/loopback-nfs.md"
)
_READ: Final = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, SHARE_MANAGER, SHARE_MANAGER_POD, NAMESPACE)


def rows_from_manifests(manifests: Manifests, policy: Policy, selector: Selector | None = None) -> list[VMStatus]:
    """Return a row for each VM that opted in, of those whose pods have the labels of the `selector`.

    Raises:
        UserError: the VMs' pods could not be listed.
    """
    groups = pods_of_vms(manifests, selector)
    found = (vm_status.vm_status_of(pods, manifests, policy) for pods in groups.values())
    events = manifests.objects.of(EVENT).values()
    return with_messages([row for row in found if row is not None], latest(events))


def pods_of_vms(manifests: Manifests, selector: Selector | None = None) -> dict[NamespacedName, list[Pod]]:
    """Return the virt-launcher pods of each VM, of those pods that have the labels of the `selector`.

    Pods without a namespace are in `default`.

    Raises:
        UserError: the VMs' pods could not be listed.
    """
    unlisted = manifests.objects.unread(VIRT_LAUNCHER_POD)
    if unlisted:
        expected = "expected the right to list the pods of all namespaces, or a bundle by somebody who has it"
        raise UserError(f"pods: {unlisted}; {expected}")
    groups: dict[NamespacedName, list[Pod]] = {}
    for pod in manifests.all_virt_launchers():
        if selector and not selector.matches(pod.metadata.labels or {}):
            continue
        namespace = pod.metadata.namespace or "default"
        placed = pod
        if not pod.metadata.namespace:
            placed = replace(pod, metadata=replace(pod.metadata, namespace=namespace))
        groups.setdefault(NamespacedName(namespace, kubevirt.vm_name(pod)), []).append(placed)
    return groups


def owner_of_vm(manifests: Manifests, vm: NamespacedName) -> str | None:
    """Return the VirtualMachine that owns the VM, None if none does; without its instance, the one of its name."""
    vmi = manifests.objects.get(VIRTUAL_MACHINE_INSTANCE, vm.name, vm.namespace)
    return vmi.virtual_machine if vmi else vm.name


def require_pods(manifests: Manifests, files: str) -> None:
    """Raise BadDocument if the files describe no pod at all: they do not tell which VMs run. A bundle tells it."""
    if not (manifests.objects.bundle or manifests.objects.of(POD)):
        raise BadDocument(
            f"{files}: no Pod is described; expected the pods of the cluster, as `bundle` or kubectl get -o yaml "
            "writes them"
        )


def misplaced_opt_ins(manifests: Manifests) -> dict[NamespacedName, list[str]]:
    """Return the hints for each VirtualMachine that has the opt-in annotation in a wrong place."""
    vms = manifests.objects.of(VIRTUAL_MACHINE)
    return {key: hints for key, vm in vms.items() if (hints := misplaced_in(vm))}


def opt_in_all_in(manifests: Manifests) -> tuple[OptInAll, str]:
    """Return the setting --opt-in-all of the cluster, and why it is not known; empty if it is."""
    unknown = manifests.why_unread(WEBHOOK_CONFIGURATION, CONFIGURATION)
    return opt_in_all_of(manifests.objects.configuration()), unknown


def unread(manifests: Manifests) -> list[str]:
    """Return a sentence for each kind of a row that could not be listed."""
    problems = {kind.title: manifests.objects.unread(kind) for kind in _READ}
    return [f"{title}: {problem}" for title, problem in problems.items() if problem]


def old_share_managers(cluster: Manifests, namespace: str) -> list[str]:
    """Return a sentence if share-managers in Longhorn's namespace are too old; nothing if none is known to be.

    The image of a pod tells what runs, also after an upgrade. Without an image the version of Longhorn counts.
    """
    pods = (pod for key, pod in cluster.objects.of(POD).items() if key.namespace == namespace)
    images = [image for pod in pods if _is_share_manager(pod) for image in [_image(pod)] if image]
    old = [image for image in images if _is_old(image.rpartition(":")[2])]
    if old:
        return [f"share-managers with an old image: {len(old)} ({min(old)}). They {_DANGER}"]
    version = cluster.objects.get(SETTING, LONGHORN_VERSION, namespace) if not images else None
    return [f"share-managers of Longhorn {version.value} {_DANGER}"] if version and _is_old(version.value) else []


def _is_share_manager(pod: Pod) -> bool:
    return pod.metadata.label(LABEL_LONGHORN_COMPONENT) == COMPONENT and not kubevirt.is_finished(pod)


def _image(pod: Pod) -> str:
    return next((each.image for each in pod.spec.containers or () if each.image), "")


def _is_old(version: str | None) -> bool:
    found = minor_version(version or "")
    return found is not None and found < _GANESHA_6
