"""Plays CDI: a DataVolume gets a claim of its name, and is done as soon as that is bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import with_any_fields
from support.kubevirt.longhorn_manager import FIRST_CONSUMER

DATA_VOLUME: Final = "DataVolume"
API_VERSION: Final = "cdi.kubevirt.io/v1beta1"
_KINDS: Final = {"DataVolume": True, "DataSource": True, "CDI": False, "CDIConfig": False, "StorageProfile": False}
"""Those that virt-controller follows, and whether they are namespaced."""


def definitions() -> Iterator[Object]:
    """CDI's kinds, with any fields."""
    for kind, namespaced in _KINDS.items():
        yield with_any_fields(kind, *API_VERSION.split("/"), scope="Namespaced" if namespaced else "Cluster")


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
