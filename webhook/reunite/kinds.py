"""The table of resources as `reunite` watches them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec.structs import replace

from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.view import Kind
from webhook.kube.informer.resource import Resource
from webhook.kube.kinds import WatchedPods, resources
from webhook.reunite import migrations, vmis


class KubeVirtKind(StrEnum):
    """The kind of kubevirt.io that no rule of an admission reads."""

    MIGRATION = "VirtualMachineInstanceMigration"


MIGRATIONS = Resource(
    kind=KubeVirtKind.MIGRATION,
    title="virtualmachineinstancemigrations.kubevirt.io",
    prefix=f"/apis/{KUBEVIRT_API_VERSION}",
    plural="virtualmachineinstancemigrations",
    namespaced=True,
    wire=migrations.WireMigration,
    transform=migrations.transform,
    to_object=migrations.to_object,
)


def admission_resources(longhorn_namespace: str, own_namespace: str) -> Iterator[Resource]:
    """Yield the resource of every kind that an admission reads, with all that `reunite` reads of VMIs."""
    for each in resources(longhorn_namespace, WatchedPods.ALL, own_namespace, autoscaler=False):
        is_vmi = each.kind is Kind.VIRTUAL_MACHINE_INSTANCE
        yield replace(each, wire=vmis.WireVMI, transform=vmis.transform) if is_vmi else each
