"""The object that owns a pod under admission: the VirtualMachineInstance of a VM's pod, Longhorn's ShareManager.

Each test that does not say otherwise has it in its cluster, because KubeVirt and Longhorn have it when they create the
pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from support.objects.builders import NAMESPACE, virt_launcher_pod
from support.objects.builders_kubevirt import vm_of
from support.objects.builders_longhorn import LONGHORN_NAMESPACE, Object, share_manager

EXISTS: Final = "exists"
ABSENT: Final = "absent"
_KINDS: Final = ("VirtualMachineInstance", "ShareManager")
_KUBEVIRT: Final = "kubevirt.io/v1"
_ANOTHER: Final = "another"
_ANOTHER_UID: Final = "00000000-0000-4000-8000-000000000000"


def with_owner(objects: Iterable[Object], review: Object, told: str = EXISTS) -> Iterator[Object]:
    """These objects, with the owner of the review's pod as `told`. An absent kind is never told: it has another one."""
    request = review["request"]
    pod = request.get("object") or {}
    namespace = request.get("namespace") or pod.get("metadata", {}).get("namespace") or ""
    owners = {_key(each): each for each in map(_described(namespace), _references(pod))}
    there: set[tuple[str, str, str]] = set()
    for each in objects:
        key = _key(each)
        if key not in owners:
            yield each
        elif told != ABSENT:
            there.add(key)
            yield _with_uid(each, owners[key]["metadata"]["uid"] if told == EXISTS else _ANOTHER_UID)
    for key, owner in owners.items():
        if told == ABSENT:
            yield _with_uid({**owner, "metadata": {**owner["metadata"], "name": _ANOTHER}}, _ANOTHER_UID)
        elif key not in there:
            yield owner if told == EXISTS else _with_uid(owner, _ANOTHER_UID)


def owners_of(pod: Object, objects: Sequence[Object]) -> list[Object]:
    """Those of these objects that the pod names as its owners, by their uids."""
    named = {(each["kind"], each["name"], each["uid"]) for each in _references(pod)}
    return [each for each in objects if (each["kind"], each["metadata"]["name"], each["metadata"].get("uid")) in named]


def owner_of(pod: Object, namespace: str) -> list[Object]:
    """The object that this pod names as its owner, with its names and uid only; none if it names none."""
    return list(map(_described(namespace), _references(pod)))


def of_launchers(objects: Iterable[Object]) -> Iterator[Object]:
    """The VirtualMachineInstances of the VMs' pods among these objects, and the one of `virt_launcher_pod`."""
    yield from owner_of(virt_launcher_pod(), NAMESPACE)
    for each in objects:
        if each["kind"] == "Pod" and (each["metadata"].get("labels") or {}).get("kubevirt.io") == "virt-launcher":
            yield from owner_of(each, each["metadata"].get("namespace", NAMESPACE))


def vms_of(objects: Iterable[Object], namespace: str) -> list[Object]:
    """The VMs of the pods among these objects, each once; `namespace` is that of a pod that names none."""
    found = {
        (vm["kind"], vm["metadata"]["namespace"], vm["metadata"]["name"]): vm
        for each in objects
        if each["kind"] == "Pod"
        for vm in vm_of(each, each["metadata"].get("namespace", namespace))
    }
    return list(found.values())


def _references(pod: Object) -> Iterator[Object]:
    for each in (pod.get("metadata") or {}).get("ownerReferences") or ():
        if each.get("kind") in _KINDS and each.get("name") and each.get("uid"):
            yield each


def _described(namespace: str) -> Any:
    def described(reference: Object) -> Object:
        name, uid = reference["name"], reference["uid"]
        if reference["kind"] == "ShareManager":
            return _with_uid(share_manager(name, namespace=LONGHORN_NAMESPACE, state="stopped"), uid)
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        return {"apiVersion": _KUBEVIRT, "kind": reference["kind"], "metadata": metadata, "spec": {}}

    return described


def _key(each: Object) -> tuple[str, str, str]:
    return each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]


def _with_uid(each: Object, uid: str) -> Object:
    return {**each, "metadata": {**each["metadata"], "uid": uid}}
