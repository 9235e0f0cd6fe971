"""Plays CDI: a DataVolume gets a claim of its name, and is done as soon as that is bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from support.control_plane.kube_api import Api, Object
from support.kubevirt.longhorn_manager import FIRST_CONSUMER

DATA_VOLUME: Final = "DataVolume"
API_VERSION: Final = "cdi.kubevirt.io/v1beta1"
_KINDS: Final = {"DataVolume": True, "DataSource": True, "CDI": False, "CDIConfig": False, "StorageProfile": False}
"""Those that virt-controller follows, and whether they are namespaced."""


def definitions() -> Iterator[Object]:
    """CDI's kinds, with any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    for kind, namespaced in _KINDS.items():
        plural = f"{kind.lower()}s"
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.cdi.kubevirt.io"},
            "spec": {
                "group": "cdi.kubevirt.io",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "scope": "Namespaced" if namespaced else "Cluster",
                "versions": [version],
            },
        }


class Cdi:
    """Follows DataVolumes and their claims."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def data_volume_changed(self, volume: Object, *, gone: bool) -> None:
        """Make the claim of a new one."""
        if gone or volume.get("status"):
            return
        metadata = volume["metadata"]
        owner = {key: volume[key] for key in ("apiVersion", "kind")} | {key: metadata[key] for key in ("name", "uid")}
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **{key: metadata[key] for key in ("name", "namespace")},
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": volume["spec"]["pvc"],
        }
        self._api.apply(claim)
        waits = volume["spec"]["pvc"]["storageClassName"] == FIRST_CONSUMER
        self._tell(volume, "WaitForFirstConsumer" if waits else "Pending")

    def claim_changed(self, claim: Object, *, gone: bool) -> None:
        """A DataVolume whose claim is bound is done."""
        owners = claim["metadata"].get("ownerReferences") or ()
        if not gone and claim["spec"].get("volumeName") and any(each["kind"] == DATA_VOLUME for each in owners):
            metadata = {key: claim["metadata"][key] for key in ("name", "namespace")}
            self._tell({"apiVersion": API_VERSION, "kind": DATA_VOLUME, "metadata": metadata}, "Succeeded")

    def _tell(self, volume: Object, phase: str) -> None:
        self._api.patch(volume, {"status": {"phase": phase, "claimName": volume["metadata"]["name"]}})
