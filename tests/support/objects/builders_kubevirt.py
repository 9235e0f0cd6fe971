"""VirtualMachines and VirtualMachineInstances as an API server stores them, with the claims of their volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from support.objects.builders import NAMESPACE, OWNER_UID, Object, vmi_uid

API_VERSION = "kubevirt.io/v1"


def vmi_spec(claims: Iterable[str] = (), *, hotpluggable: Iterable[str] = (), cdroms: Iterable[str] = ()) -> Object:
    """The spec of a VM: a disk for each of `claims` and `hotpluggable`, a CD-ROM for each of `cdroms`."""
    volumes: list[Any] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    volumes += [{"name": f"cd-{name}", "persistentVolumeClaim": {"claimName": name}} for name in cdroms]
    volumes += [{"name": name, "dataVolume": {"name": name, "hotpluggable": True}} for name in hotpluggable]
    disks: list[Any] = [{"name": name, "disk": {"bus": "virtio"}} for name in (*claims, *hotpluggable)]
    disks += [{"name": f"cd-{name}", "cdrom": {"bus": "sata", "readonly": True}} for name in cdroms]
    return {"domain": {"devices": {"disks": disks}}, "volumes": volumes}


def virtual_machine(
    name: str = "db01",
    claims: Iterable[str] = ("disk",),
    *,
    namespace: str = NAMESPACE,
    start_failures: int = 0,
    **claims_by_use: Iterable[str],
) -> Object:
    """A VirtualMachine, which need not run; `claims_by_use` are those of `vmi_spec`."""
    failure = {"consecutiveFailCount": start_failures, "lastFailedVMIUID": "f", "retryAfterTimestamp": None}
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runStrategy": "Always", "template": {"spec": vmi_spec(claims, **claims_by_use)}},
        "status": {"startFailure": failure} if start_failures else {},
    }


def virtual_machine_instance(
    name: str = "db01",
    claims: Iterable[str] = ("disk",),
    *,
    namespace: str = NAMESPACE,
    vm: str | None = "",
    uid: str | None = None,
    node: str | None = None,
    **claims_by_use: Iterable[str],
) -> Object:
    """A VirtualMachineInstance of the VirtualMachine `vm`: by default of the same name, of none for None.

    It runs on `node`. Its uid is by default the one that `virt_launcher_pod` and `vm_pod` name.
    """
    owner = {"apiVersion": API_VERSION, "kind": "VirtualMachine", "name": vm or name, "uid": "vm"}
    return {
        "apiVersion": API_VERSION,
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or (OWNER_UID if name == "db01" else vmi_uid(name, namespace)),
            **({} if vm is None else {"ownerReferences": [owner]}),
        },
        "spec": vmi_spec(claims, **claims_by_use),
        **({} if node is None else {"status": {"nodeName": node}}),
    }


VM_KEYS: Final = frozenset(
    {"claims", "cdroms", "hotpluggable", "namespace", "startFailures", "instanceOf", "runs", "node"}
)


def described_vm(name: str, state: Object) -> Iterator[Object]:
    """The objects of one VM of a row: its VirtualMachine, and its VirtualMachineInstance unless `runs` is false.

    `instanceOf` is another name of the VirtualMachine, null for none; then there is only the instance.
    """
    claims = {key: state[key] for key in ("cdroms", "hotpluggable") if key in state}
    parts: Any = {"claims": state.get("claims", ()), "namespace": state.get("namespace", NAMESPACE), **claims}
    if state.get("runs", True):
        uid = OWNER_UID if name == "db01" else None
        yield virtual_machine_instance(name, vm=state.get("instanceOf", name), uid=uid, node=state.get("node"), **parts)
    if "instanceOf" not in state or not state.get("runs", True):
        yield virtual_machine(name, start_failures=state.get("startFailures", 0), **parts)


def vm_of(pod: Object, namespace: str) -> Iterator[Object]:
    """The VirtualMachine and the VirtualMachineInstance that own a virt-launcher pod, without their volumes."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "VirtualMachineInstance" and owner.get("name"):
            yield virtual_machine_instance(owner["name"], (), namespace=namespace, uid=owner.get("uid"))
            yield virtual_machine(owner["name"], (), namespace=namespace)
