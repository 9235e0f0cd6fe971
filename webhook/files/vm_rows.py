"""The rows of a cluster that files describe."""

from __future__ import annotations

from msgspec.structs import replace

from webhook.core.api import kubevirt
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.observe import vm_status
from webhook.core.observe.vm_status import VMStatus
from webhook.core.opt_in import Mode, Policy
from webhook.files.manifests import Manifests


def rows_from_manifests(manifests: Manifests, longhorn_namespace: str, mode: Mode = Mode.REQUIRED) -> list[VMStatus]:
    """Return a row for each VM that opted in. Pods without a namespace are in `default`."""
    groups: dict[NamespacedName, list[Pod]] = {}
    for pod in manifests.all_virt_launchers():
        namespace = pod.metadata.namespace or "default"
        placed = replace(pod, metadata=replace(pod.metadata, namespace=namespace))
        groups.setdefault(NamespacedName(namespace, kubevirt.vm_name(pod)), []).append(placed)
    policy = Policy(mode, longhorn_namespace)
    found = (vm_status.vm_status_of(pods, manifests, policy) for pods in groups.values())
    return [row for row in found if row is not None]
