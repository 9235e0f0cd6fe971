"""The table of resources that only `reunite` watches."""

from __future__ import annotations

from enum import StrEnum

from webhook.kube.informer.resource import Resource
from webhook.reunite import migrations, vmis


class KubeVirtKind(StrEnum):
    """The kinds of kubevirt.io that are watched. No rule of an admission reads them."""

    VIRTUAL_MACHINE_INSTANCE = "VirtualMachineInstance"
    MIGRATION = "VirtualMachineInstanceMigration"


def kubevirt_resources() -> tuple[Resource, Resource]:
    """Return the resources that only `reunite` watches: VirtualMachineInstances, and their migrations."""
    prefix = "/apis/kubevirt.io/v1"
    return (
        Resource(
            kind=KubeVirtKind.VIRTUAL_MACHINE_INSTANCE,
            title="virtualmachineinstances.kubevirt.io",
            prefix=prefix,
            plural="virtualmachineinstances",
            namespaced=True,
            wire=vmis.WireVMI,
            transform=vmis.transform,
            to_object=vmis.to_object,
            page_objects=100,  # 20 KB each
        ),
        Resource(
            kind=KubeVirtKind.MIGRATION,
            title="virtualmachineinstancemigrations.kubevirt.io",
            prefix=prefix,
            plural="virtualmachineinstancemigrations",
            namespaced=True,
            wire=migrations.WireMigration,
            transform=migrations.transform,
            to_object=migrations.to_object,
        ),
    )
