"""Nodes with everything on them that is played: kubelets, virt-handler, CDI, and Longhorn with its CSI driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self

from support.control_plane.kube_api import Object
from support.kubevirt import longhorn_manager
from support.kubevirt.cdi import API_VERSION, DATA_VOLUME, Cdi
from support.kubevirt.following import Follower
from support.kubevirt.kubelets import Kubelets, now
from support.kubevirt.longhorn_manager import LonghornManager
from support.kubevirt.plane import HANDLER, NAMESPACE, KubeVirtPlane, namespace_named
from support.kubevirt.virt_handler import VirtHandler
from support.objects import builders

HEARTBEAT: Final = "kubevirt.io/heartbeat"
SCHEDULABLE: Final = "kubevirt.io/schedulable"


class Nodes:
    """A context manager: the nodes of these names, whose pods run. Leave it before the control plane."""

    def __init__(
        self,
        plane: KubeVirtPlane,
        names: Sequence[str],
        *,
        labels: Mapping[str, Mapping[str, str]] | None = None,
        allocatable: Mapping[str, str] | None = None,
    ) -> None:
        self.plane, self.names = plane, list(names)
        self._cordoned: set[str] = set()
        self._labels, self._allocatable = labels or {}, allocatable or {}
        plane.install([*longhorn_manager.installed(), namespace_named(builders.NAMESPACE)])
        for namespace in (builders.LONGHORN_NAMESPACE, builders.NAMESPACE):
            plane.api.wait_for(_account(namespace), lambda found: found is not None, what="there")
        plane.install(self._nodes())
        for name in names:
            plane.api.patch(
                builders.longhorn_node(name), {"status": builders.longhorn_node(name)["status"]}, subresource="status"
            )
        handler = plane.as_user(plane.service_account(NAMESPACE, HANDLER))
        longhorn = plane.as_user(plane.service_account(builders.LONGHORN_NAMESPACE, longhorn_manager.ACCOUNT))
        self.longhorn = LonghornManager(longhorn)
        self.kubelets = Kubelets(plane.api, self.longhorn)
        self.virt_handler = VirtHandler(handler, self.kubelets, plane.api)
        self.cdi = Cdi(plane.api)
        self._followers = [
            Follower(plane.api, "v1", "PersistentVolumeClaim", self._claim_changed),
            *([Follower(plane.api, API_VERSION, DATA_VOLUME, self.cdi.data_volume_changed)] if plane.has_cdi else ()),
            Follower(plane.api, "v1", "Pod", self.kubelets.pod_changed),
            Follower(plane.api, "kubevirt.io/v1", "VirtualMachineInstance", self.virt_handler.instance_changed),
        ]

    def __enter__(self) -> Self:
        for each in self._followers:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._followers:
            each.end()

    @property
    def failures(self) -> list[str]:
        """What went wrong with those that are played."""
        return [failure for each in self._followers for failure in each.failures]

    def beat(self) -> None:
        """Have every virt-handler tell that it lives, and takes VMs (pkg/virt-handler/heartbeat/heartbeat.go).

        After 5 minutes without it a node is lost to KubeVirt: virt-controller takes the label from it.
        """
        told = {"annotations": {HEARTBEAT: now()}, "labels": {SCHEDULABLE: "true"}}
        for name in self.names:
            if name not in self.kubelets.lost:
                self.plane.api.patch(builders.node(name), {"metadata": told})

    def cordon(self, name: str, *, on: bool = True) -> None:
        """As `kubectl cordon`; the taint is the node lifecycle controller's."""
        (self._cordoned.add if on else self._cordoned.discard)(name)
        self.plane.api.patch(builders.node(name), {"spec": {"unschedulable": on}})
        self._taint(name)

    def lose(self, name: str) -> None:
        """A node goes down: its kubelet says nothing any more, and it gets the taint of that."""
        self.kubelets.lost.add(name)
        self._tell(name, "Unknown")

    def bring_back(self, name: str) -> None:
        """The node is up again."""
        self.kubelets.lost.discard(name)
        self.beat()
        self._tell(name, "True")

    def _tell(self, name: str, ready: str) -> None:
        """Whether it is ready, as the node lifecycle controller and Longhorn tell it."""
        for each in (builders.node(name, ready=ready), builders.longhorn_node(name, ready=ready)):
            conditions = [{**condition, "lastTransitionTime": now()} for condition in each["status"]["conditions"]]
            self.plane.api.patch(each, {"status": {"conditions": conditions}}, subresource="status")
        self._taint(name)

    def _taint(self, name: str) -> None:
        """A node that is lost has the taint of that, cordoned or not."""
        ready = "Unknown" if name in self.kubelets.lost else "True"
        taints = builders.node(name, ready=ready, cordoned=name in self._cordoned)["spec"].get("taints")
        self.plane.api.patch(builders.node(name), {"spec": {"taints": taints}})

    def _claim_changed(self, claim: Object, *, gone: bool) -> None:
        self.longhorn.claim_changed(claim, gone=gone)
        self.cdi.claim_changed(claim, gone=gone)

    def _nodes(self) -> Iterator[Object]:
        for name in self.names:
            node = builders.node(name, labels=self._labels.get(name), allocatable=self._allocatable)
            node["metadata"]["annotations"] = {HEARTBEAT: now()}
            yield node
            yield builders.longhorn_node(name)
            yield {key: value for key, value in builders.instance_manager_pod(name).items() if key != "status"}


def _account(namespace: str) -> Object:
    """The service account of pods that name none, which a controller makes."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
