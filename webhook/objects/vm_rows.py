"""The VMs of a cluster that was read once: their rows, their pods, and the settings that count for them."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.core.api import kubevirt
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, LONGHORN_API_VERSION
from webhook.core.api.longhorn import SHARE_MANAGER as COMPONENT
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.live_migration.kubevirt import minor_version
from webhook.core.observe import not_running, vm_status
from webhook.core.observe.misplaced import misplaced_in
from webhook.core.observe.reunite_messages import latest, with_messages
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.objects.api.longhorn import LONGHORN_VERSION
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
)
from webhook.objects.manifests import Manifests

_GANESHA_6: Final = (1, 8)  # the first Longhorn that has it: longhorn issue 9614
_DANGER: Final = (
    "serve NFS with a Ganesha before 6. Without free memory on their node, a VM and its share-manager can block each "
    "other; expected Longhorn 1.8 or newer: docs/concepts/loopback-nfs.md"
)
_OVER: Final = ("Succeeded", "Failed")  # kubevirt api/core/v1/types.go, VirtualMachineInstance.IsFinal
_READ: Final = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, SHARE_MANAGER, SHARE_MANAGER_POD, NAMESPACE)


def rows_from_manifests(manifests: Manifests, policy: Policy, selector: Selector | None = None) -> list[VMStatus]:
    """Return a row for each VM that opted in, of those whose pods have the labels of the `selector`.

    Raises:
        UserError: the VMs' pods could not be listed.
    """
    groups = pods_of_vms(manifests, selector)
    at = manifests.objects.at
    found = (vm_status.vm_status_of(pods, manifests, policy, at) for pods in groups.values())
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


def existing_vms(manifests: Manifests) -> dict[NamespacedName, str]:
    """Return every VM that was read, with what `explain` calls it: vmi for an instance without a VirtualMachine."""
    vmis = dict.fromkeys(manifests.objects.of(VIRTUAL_MACHINE_INSTANCE), "vmi")
    vms = dict.fromkeys(manifests.objects.of(VIRTUAL_MACHINE), "vm")
    return dict.fromkeys(pods_of_vms(manifests), "vm") | vmis | vms


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


def require_share_managers(manifests: Manifests, namespace: str) -> None:
    """Raise UserError if Longhorn's namespace has no ShareManager at all, though somebody could list them.

    Without one, nothing could be apart, and a wrong namespace would look like a cluster in order.
    """
    if manifests.objects.within(SHARE_MANAGER, namespace) or manifests.objects.unread(SHARE_MANAGER):
        return
    elsewhere = sorted({key.namespace for key in manifests.objects.of(SHARE_MANAGER)})
    hint = f"--longhorn-namespace {elsewhere[0]}" if elsewhere else "--longhorn-namespace"
    raise UserError(
        f"namespace {namespace} has no ShareManager at all; expected Longhorn's own namespace: {hint}",
        *of_other_versions(manifests),
    )


def of_other_versions(manifests: Manifests) -> list[str]:
    """Return a sentence if files have objects of Longhorn in an API version that is not read."""
    ignored = manifests.objects.ignored.items()
    old = [(each, count) for each, count in ignored if each.startswith("longhorn.io/") and " " in each]
    other = [f"{count} {each}" for each, count in sorted(old) if each.split()[0] != LONGHORN_API_VERSION]
    expected = f"expected {LONGHORN_API_VERSION}, which Longhorn has since 1.3"
    return [f"objects of Longhorn that are not read: {', '.join(other)}; {expected}"] if other else []


def misplaced_opt_ins(manifests: Manifests) -> dict[NamespacedName, list[str]]:
    """Return the hints for each VirtualMachine that has the opt-in annotation in a wrong place."""
    vms = manifests.objects.of(VIRTUAL_MACHINE)
    return {key: hints for key, vm in vms.items() if (hints := misplaced_in(vm))}


def may_run(manifests: Manifests, vm: NamespacedName) -> bool:
    """Whether the VM has a VirtualMachineInstance that is not over: KubeVirt starts it, or its pod was not read."""
    vmi = manifests.objects.get(VIRTUAL_MACHINE_INSTANCE, vm.name, vm.namespace)
    if vmi:
        return (vmi.status.phase if vmi.status else None) not in _OVER
    found = manifests.objects.get(VIRTUAL_MACHINE, vm.name, vm.namespace)
    return bool(found and found.status and found.status.created)


def unread(manifests: Manifests) -> list[str]:
    """Return a sentence for each kind of a row that could not be listed, and for pods whose status is not known."""
    problems = {kind.title: manifests.objects.unread(kind) for kind in _READ}
    unknown = sorted(pod.metadata.name or "" for pod in manifests.all_virt_launchers() if not_running.is_unknown(pod))
    if unknown:
        which = f"{unknown[0]}{f' and {len(unknown) - 1} others' if len(unknown) > 1 else ''}"
        problems[POD.title] = f"the status of {which} does not tell whether it runs"
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
