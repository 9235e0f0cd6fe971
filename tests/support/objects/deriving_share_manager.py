"""Longhorn volumes to derive share-manager pods from, and the objects that Longhorn reads for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import convert
from support.drivers.explaining import the_cluster

from webhook.explain.derive.share_manager import derive_share_manager
from webhook.explain.derive.virt_launcher import Derived
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects.api.storage import Volume
from webhook.objects.kinds import APIResource
from webhook.objects.manifests import Listed

NAMESPACE: Final = "longhorn-system"
Object = dict[str, Any]
PV: Final = {"persistentvolumes/pv-disk": {"spec": {"storageClassName": "fast"}}}


class ClusterOfObjects(ClusterReader):
    """A cluster with objects by PLURAL/NAME. A string in place of an object is the problem of reading it."""

    def __init__(self, objects: Mapping[str, Object | str]) -> None:
        super().__init__(the_cluster().view, "objects of a test", NAMESPACE)
        self._told = objects
        self.asked: list[str] = []

    def lookup(self, kind: APIResource[Any], name: str, namespace: str = "") -> Listed[Any]:
        """Return the object, nothing, or the problem."""
        key = f"{kind.plural}/{name}"
        self.asked.append(f"{namespace}/{key}")
        found = self._told.get(key)
        if isinstance(found, str):
            return Listed(problem=found)
        named = {"metadata": {"name": name}}
        return Listed([] if found is None else [convert({**named, **found}, kind.type)])


def volume(*, pv: str | None = "pv-disk", **spec: Any) -> Volume:
    """A Volume of Longhorn. `pv` is the name of its PersistentVolume."""
    status = {} if pv is None else {"kubernetesStatus": {"pvName": pv, "namespace": "vms", "pvcName": "disk"}}
    value = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "Volume",
        "metadata": {"name": "pvc-disk", "namespace": NAMESPACE},
        "spec": {"accessMode": "rwx", **spec},
        "status": status,
    }
    return convert(value, Volume)


def storage_class(**parameters: str) -> dict[str, Object]:
    """The StorageClass of the volume with these parameters, and its PersistentVolume."""
    return {**PV, "storageclasses/fast": {"parameters": parameters}}


def derived(objects: Mapping[str, Object | str], found: Volume | None = None) -> Derived:
    """The pod that is derived from the volume."""
    return derive_share_manager(found or volume(), ClusterOfObjects(objects), NAMESPACE)
