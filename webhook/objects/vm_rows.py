"""The rows of a cluster that files describe."""

from __future__ import annotations

from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.core.api import kubevirt
from webhook.core.api.longhorn import ShareManager
from webhook.core.api.meta import Namespace, NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.api.storage import PersistentVolume, PersistentVolumeClaim
from webhook.core.api.virtual_machine import VirtualMachine
from webhook.core.observe import vm_status
from webhook.core.observe.misplaced import misplaced_in
from webhook.core.observe.reunite_messages import ReuniteEvent, latest, with_messages
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import OptInAll, Policy, opt_in_all_of
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.objects.documents import BadDocument
from webhook.objects.manifests import Manifests
from webhook.objects.objects import CONFIGURATION

_READ = (PersistentVolumeClaim, PersistentVolume, ShareManager, Namespace)


def rows_from_manifests(manifests: Manifests, policy: Policy, selector: Selector | None = None) -> list[VMStatus]:
    """Return a row for each VM that opted in, of those whose pods have the labels of the `selector`.

    Pods without a namespace are in `default`.

    Raises:
        UserError: the files are a bundle whose pods could not be listed.
    """
    groups = pods_of_vms(manifests, selector)
    found = (vm_status.vm_status_of(pods, manifests, policy) for pods in groups.values())
    events = (each.read(ReuniteEvent) for each in manifests.objects.documents("v1", "Event").values())
    return with_messages([row for row in found if row is not None], latest(events))


def pods_of_vms(manifests: Manifests, selector: Selector | None = None) -> dict[NamespacedName, list[Pod]]:
    """Return the virt-launcher pods of each VM, of those pods that have the labels of the `selector`.

    Pods without a namespace are in `default`.

    Raises:
        UserError: the files are a bundle whose pods could not be listed.
    """
    if manifests.objects.unread(Pod):
        expected = "expected the right to list the pods of all namespaces, or a bundle by somebody who has it"
        raise UserError(f"pods: {manifests.objects.unread(Pod)}; {expected}")
    groups: dict[NamespacedName, list[Pod]] = {}
    for pod in manifests.all_virt_launchers():
        if selector and not selector.matches(pod.metadata.labels or {}):
            continue
        namespace = pod.metadata.namespace or "default"
        placed = replace(pod, metadata=replace(pod.metadata, namespace=namespace))
        groups.setdefault(NamespacedName(namespace, kubevirt.vm_name(pod)), []).append(placed)
    return groups


def require_pods(manifests: Manifests, files: str) -> None:
    """Raise BadDocument if the files describe no pod at all: they do not tell which VMs run. A bundle tells it."""
    if not (manifests.objects.bundle or manifests.objects.of(Pod)):
        raise BadDocument(
            f"{files}: no Pod is described; expected the pods of the cluster, as `bundle` or kubectl get -o yaml "
            "writes them"
        )


def misplaced_opt_ins(manifests: Manifests) -> dict[NamespacedName, list[str]]:
    """Return the hints for each VirtualMachine that has the opt-in annotation in a wrong place."""
    vms = manifests.objects.all_of(VirtualMachine) or {}
    return {key: hints for key, vm in vms.items() if (hints := misplaced_in(vm))}


def opt_in_all_in(manifests: Manifests) -> tuple[OptInAll, str]:
    """Return the setting --opt-in-all of the cluster that files describe, and why a bundle does not know it."""
    objects = manifests.objects
    problem = objects.bundle.problem(*CONFIGURATION) if objects.bundle else ""
    return opt_in_all_of(objects.configuration()), problem


def unread(manifests: Manifests) -> list[str]:
    """Return a sentence for each kind of a row that a bundle has no objects of, because they could not be listed."""
    problems = {type_.__name__: manifests.objects.unread(type_) for type_ in _READ}
    return [f"{kind}: {problem}" for kind, problem in problems.items() if problem]
