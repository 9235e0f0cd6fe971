"""Plays Longhorn's manager and CSI: provisions claims, and runs a share-manager while a VM's pod needs the volume.

As Longhorn 1.12 does it: a claim is provisioned when it is made, or with WaitForFirstConsumer when the scheduler has
chosen a node. A pod that got a node makes a ticket for that node. With the first ticket the share-manager pod is
created, under Longhorn's identity, so that the webhook sees it. Without a ticket the share-manager is stopped. Nobody
attaches replicas, and `ownerID` never moves to another node.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from support.control_plane.kube_api import Api, Object
from support.objects import builders
from support.objects.builders import LONGHORN_NAMESPACE

ACCOUNT: Final = "longhorn-service-account"
CLASS: Final = "longhorn"
FIRST_CONSUMER: Final = "longhorn-wait"
_COMPONENT: Final = "longhorn.io/component"
_VOLUME: Final = "longhorn.io/share-manager"
_SELECTED: Final = "volume.kubernetes.io/selected-node"
_OVER: Final = ("Succeeded", "Failed")


def installed() -> Iterator[Object]:
    """What Longhorn brings: its namespace, its account with every right, and two StorageClasses."""
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": LONGHORN_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LONGHORN_NAMESPACE}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": LONGHORN_NAMESPACE}}
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "longhorn-bind"},
        "roleRef": role,
        "subjects": [account],
    }
    for name, mode in ((CLASS, "Immediate"), (FIRST_CONSUMER, "WaitForFirstConsumer")):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": builders.LONGHORN_DRIVER,
            "volumeBindingMode": mode,
        }


class LonghornManager:
    """Knows every claim and pod that it has received; safe for several threads.

    Attributes:
        kept: volumes whose share-manager stays while nobody uses them: what is left of one for 30 s after a stop.
        created: how many share-manager pods there have been of each volume.
        volumes: (namespace, claim) -> volume.
    """

    def __init__(self, api: Api) -> None:
        self._api, self._lock = api, threading.RLock()
        self.kept: set[str] = set()
        self.created: Counter[str] = Counter()
        self.volumes: dict[tuple[str, str], str] = {}
        self._pods: dict[str, dict[str, Object]] = {}  # volume -> pods of VMs that use it, by uid
        self._share_managers: dict[str, Object] = {}
        self._tickets: dict[str, Sequence[str]] = {}

    def claim_changed(self, claim: Object, *, gone: bool) -> None:
        """Provision a claim of ours, and know the volume of one that is bound."""
        metadata, spec = claim["metadata"], claim["spec"]
        key = metadata["namespace"], metadata["name"]
        with self._lock:
            if gone:
                self.volumes.pop(key, None)
            elif volume := spec.get("volumeName"):
                if _is_served(claim):
                    self.volumes[key] = volume
            elif spec.get("storageClassName") == CLASS or _SELECTED in (metadata.get("annotations") or {}):
                self._provision(claim)

    def pod_changed(self, pod: Object, *, gone: bool) -> list[str]:
        """Follow a pod. Returns the volumes whose share-manager runs since now."""
        with self._lock:
            labels = pod["metadata"].get("labels") or {}
            if labels.get(_COMPONENT) == "share-manager":
                return self._share_manager_changed(labels[_VOLUME], pod, gone=gone)
            for volume in self.of(pod):
                users = self._pods.setdefault(volume, {})
                uses = not gone and pod["spec"].get("nodeName") and pod["status"].get("phase") not in _OVER
                users.pop(pod["metadata"]["uid"], None)
                if uses:
                    users[pod["metadata"]["uid"]] = pod
                self.reconcile(volume)
            return []

    def of(self, pod: Object) -> list[str]:
        """The volumes of a pod's claims that are served by a share-manager."""
        volumes = pod["spec"].get("volumes") or ()
        claims = [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]
        keys = [(pod["metadata"]["namespace"], claim) for claim in claims]
        return [self.volumes[key] for key in keys if key in self.volumes]

    def mounted(self, pod: Object) -> bool:
        """Whether the share-manager of each of its volumes runs."""
        with self._lock:
            return all(self.node(volume) for volume in self.of(pod))

    def node(self, volume: str) -> str | None:
        """The node that the share-manager of a volume runs on."""
        pod = self._share_managers.get(volume)
        is_up = pod and pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        return pod["spec"]["nodeName"] if pod and is_up else None

    def reconcile(self, volume: str) -> None:
        """Have the tickets that its users need, and a share-manager pod while there is one."""
        with self._lock:
            nodes = sorted({pod["spec"]["nodeName"] for pod in self._pods.get(volume, {}).values()})
            if nodes != [*self._tickets.get(volume, ())]:
                self._write_tickets(volume, nodes)
            pod = self._share_managers.get(volume)
            if nodes and not pod:
                new = self._api.create(builders.share_manager_pod(volume, phase=None))
                self._share_managers[volume] = new
                self.created[volume] += 1
                self._tell(volume, state="starting")
            elif not nodes and pod and volume not in self.kept:
                self._tell(volume, state="stopped")
                self._api.delete(pod, missing_ok=True)

    def _share_manager_changed(self, volume: str, pod: Object, *, gone: bool) -> list[str]:
        known = self._share_managers.get(volume)
        if known and known["metadata"]["uid"] != pod["metadata"]["uid"]:
            return []  # of one before
        was = self.node(volume)
        if gone:
            self._share_managers.pop(volume, None)
            self.reconcile(volume)
            return []
        self._share_managers[volume] = pod
        if (now := self.node(volume)) and not was:
            self._tell(volume, state="running", ownerID=now)
            return [volume]
        return []

    def _write_tickets(self, volume: str, nodes: Sequence[str]) -> None:
        was, wanted = (
            builders.volume_attachment(volume, [("csi-attacher", node) for node in each])
            for each in (self._tickets.get(volume, ()), nodes)
        )
        self._tickets[volume] = nodes
        gone = dict.fromkeys(was["spec"]["attachmentTickets"])
        self._api.patch(wanted, {"spec": {"attachmentTickets": gone | wanted["spec"]["attachmentTickets"]}})

    def _tell(self, volume: str, **status: str) -> None:
        named = {**builders.share_manager(volume), "status": status}
        self._api.patch(named, {"status": status}, subresource="status")

    def _provision(self, claim: Object) -> None:
        """A volume with its ShareManager, which is stopped, and the claim bound to it."""
        metadata, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{metadata['uid']}"
        volume = builders.persistent_volume(
            name, claim=metadata["name"], namespace=metadata["namespace"], access_modes=spec["accessModes"]
        )
        volume["spec"]["storageClassName"] = spec["storageClassName"]
        served = [builders.share_manager(name), builders.volume_attachment(name, ())] if _is_served(claim) else []
        for each in (volume, *served):
            each["metadata"].pop("uid", None)
            self._api.apply({key: value for key, value in each.items() if key != "status"})
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        self._api.patch(claim, {"spec": {"volumeName": name}, "metadata": {"annotations": bound}})
        status = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": spec["resources"]["requests"]}
        self._api.patch(claim, {"status": status}, subresource="status")
        if _is_served(claim):
            self._tell(name, state="stopped")
            self.volumes[metadata["namespace"], metadata["name"]] = name


def _is_served(claim: Object) -> bool:
    """Whether a share-manager serves it: many may write, and it is a file system."""
    spec = claim["spec"]
    return "ReadWriteMany" in spec["accessModes"] and spec.get("volumeMode", "Filesystem") == "Filesystem"
