"""VirtualMachines, their claims and migrations, as users write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from support.control_plane.kube_api import Object
from support.kubevirt.longhorn_manager import CLASS
from support.objects.builders import NAMESPACE, OPT_IN
from support.objects.builders_kubevirt import API_VERSION

INSTANCE: Final = "VirtualMachineInstance"
MIGRATION: Final = "VirtualMachineInstanceMigration"


def claim(name: str, *, storage_class: str = CLASS, modes: Iterable[str] = ("ReadWriteMany",)) -> Object:
    """A claim for a disk."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "accessModes": [*modes],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": storage_class,
        },
    }


def virtual_machine(
    name: str,
    claims: Iterable[str],
    *,
    opt_in: str | None = "true",
    memory: str = "1Gi",
    run_strategy: str = "Always",
    domain: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A VM with a disk on each claim; `spec` are other fields of its spec, `domain` of its domain."""
    disks = [{"name": each, "disk": {"bus": "virtio"}} for each in claims]
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    devices = {"disks": disks, **(domain or {}).get("devices", {})}
    others = {key: value for key, value in (domain or {}).items() if key != "devices"}
    asked = {} if opt_in is None else {OPT_IN: opt_in}
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "runStrategy": run_strategy,
            "template": {
                "metadata": {"annotations": {**asked, **(annotations or {})}},
                "spec": {
                    "domain": {"memory": {"guest": memory}, "devices": devices, **others},
                    "evictionStrategy": "LiveMigrate",
                    "terminationGracePeriodSeconds": 0,
                    "volumes": volumes,
                },
            },
            **spec,
        },
    }


def instance(name: str) -> Object:
    """Names the instance of a VM."""
    return _named(INSTANCE, name)


def vm(name: str) -> Object:
    """Names a VM."""
    return _named("VirtualMachine", name)


def migration(name: str, vm_name: str, **spec: Any) -> Object:
    """A migration as a user makes it."""
    return {**_named(MIGRATION, name), "spec": {"vmiName": vm_name, **spec}}


def _named(kind: str, name: str) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}}
