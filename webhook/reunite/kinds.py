"""The table of resources that only `reunite` watches."""

from __future__ import annotations

from webhook.core.view import Kind
from webhook.kube.informer.resource import Resource
from webhook.reunite import migrations, vmis


def kubevirt_resources() -> tuple[Resource, Resource]:
    """Return the resources that only `reunite` watches: VirtualMachineInstances, and their migrations."""
    prefix = "/apis/kubevirt.io/v1"
    return (
        Resource(
            kind=Kind.VIRTUAL_MACHINE_INSTANCE,
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
            kind=Kind.MIGRATION,
            title="virtualmachineinstancemigrations.kubevirt.io",
            prefix=prefix,
            plural="virtualmachineinstancemigrations",
            namespaced=True,
            wire=migrations.WireMigration,
            transform=migrations.transform,
            to_object=migrations.to_object,
        ),
    )
