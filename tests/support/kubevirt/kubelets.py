"""Plays the kubelets: a pod that is bound runs as soon as its volumes are mounted, and one that is deleted vanishes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from support.control_plane.kube_api import Api, Object
from support.kubevirt.longhorn_manager import LonghornManager

_PROVISIONING: Final = "kubevirt.io/ephemeral-provisioning"
_OVER: Final = ("Succeeded", "Failed")


def now() -> str:
    """The time, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelets:
    """The kubelets of all nodes.

    Attributes:
        lost: nodes whose kubelet says nothing.
        failing: VMs whose virt-launcher ends at once.
        pods: the pods that are there, by uid.
    """

    def __init__(self, api: Api, longhorn: LonghornManager) -> None:
        self._api, self._longhorn = api, longhorn
        self.lost: set[str] = set()
        self.failing: set[str] = set()
        self.pods: dict[str, Object] = {}

    def pod_changed(self, pod: Object, *, gone: bool) -> None:
        """Do with a pod what its kubelet does, and with those that waited for its share-manager."""
        uid = pod["metadata"]["uid"]
        if gone:
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = pod
        for volume in self._longhorn.pod_changed(pod, gone=gone):
            for each in [each for each in self.pods.values() if volume in self._longhorn.of(each)]:
                self._step(each)
        if not gone:
            self._step(pod)

    def _step(self, pod: Object) -> None:
        node, phase = pod["spec"].get("nodeName"), pod["status"].get("phase", "Pending")
        if "deletionTimestamp" in pod["metadata"]:
            if node not in self.lost:
                self._api.delete(pod, missing_ok=True)
        elif node and node not in self.lost and phase == "Pending" and self._longhorn.mounted(pod):
            self._api.patch(pod, {"status": self._run(pod)}, subresource="status")

    def _run(self, pod: Object) -> Object:
        annotations = pod["metadata"].get("annotations") or {}
        if _PROVISIONING in annotations:
            return ended(pod, "Succeeded")
        if annotations.get("kubevirt.io/domain") in self.failing:
            return ended(pod, "Failed")
        state = {"running": {"startedAt": now()}}
        ready = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready", "ContainersReady")]
        scheduled = [each for each in pod["status"].get("conditions") or () if each["type"] == "PodScheduled"]
        return {
            "phase": "Running",
            "startTime": now(),
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [*scheduled, *ready],
            "containerStatuses": [_container(each, state, ready=True) for each in pod["spec"]["containers"]],
        }


def ended(pod: Object, phase: str) -> Object:
    """The status of a pod whose containers have ended."""
    state = {"terminated": {"exitCode": int(phase != "Succeeded"), "startedAt": now(), "finishedAt": now()}}
    return {
        "phase": phase,
        "containerStatuses": [_container(each, state, ready=False) for each in pod["spec"]["containers"]],
    }


def is_over(pod: Object) -> bool:
    """Whether its containers have ended."""
    return pod["status"].get("phase") in _OVER


def _container(container: Object, state: Object, *, ready: bool) -> Object:
    told = {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}
    return {**told, "ready": ready, "started": ready, "state": state}
