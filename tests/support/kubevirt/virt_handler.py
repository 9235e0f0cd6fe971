"""Plays virt-handler on every node: the status of VirtualMachineInstances, and the steps of live migrations.

As pkg/virt-handler of KubeVirt 1.8 (vm.go, migration-source.go, migration-target.go), without a domain behind it. A VM
runs as soon as its pod does. A migration takes no time, unless it is held.
"""

from __future__ import annotations

import contextlib
import http.client
from typing import Final

from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.kubevirt.kubelets import Kubelets, ended, now

_ADDRESS: Final = "10.0.0.1"
_PORTS: Final = {"49152": 49152}
_NODE: Final = "kubevirt.io/nodeName"


class VirtHandler:
    """The virt-handlers of all nodes.

    Attributes:
        held: VMs whose migrations do not end.
        unmigratable: VMs that can't be migrated.
    """

    def __init__(self, api: Api, kubelets: Kubelets, admin: Api) -> None:
        self._api, self._kubelets, self._admin = api, kubelets, admin
        self.held: set[str] = set()
        self.unmigratable: set[str] = set()
        self.instances: dict[tuple[str, str], Object] = {}

    def instance_changed(self, instance: Object, *, gone: bool) -> None:
        """Do the next step of this instance."""
        metadata, status = instance["metadata"], instance.get("status") or {}
        key = metadata["namespace"], metadata["name"]
        if gone:
            self.instances.pop(key, None)
            return
        self.instances[key] = instance
        if status.get("nodeName") in self._kubelets.lost:
            return
        phase = status.get("phase")
        if "deletionTimestamp" in metadata:
            if phase in ("Scheduled", "Running"):
                self.shut_down(instance)
        elif phase == "Scheduled":
            self._update(instance, self._running(instance))
        elif phase == "Running":
            self._move(instance)
            self._plug(instance)

    def shut_down(self, instance: Object, phase: str = "Succeeded") -> None:
        """The guest has ended."""
        self._update(instance, {"phase": phase})

    def release(self, name: str) -> None:
        """Let the migration of a VM that was held go on."""
        self.held.discard(name)
        for (_, each), instance in [*self.instances.items()]:
            if each == name:
                self._move(instance)

    def _running(self, instance: Object) -> Object:
        kept = [each for each in instance["status"].get("conditions") or () if each["type"] != "LiveMigratable"]
        is_able = instance["metadata"]["name"] not in self.unmigratable
        able = {"type": "LiveMigratable", "status": str(is_able), "lastTransitionTime": None, "lastProbeTime": None}
        able |= {} if is_able else {"reason": "HostDeviceNotLiveMigratable"}
        passed = instance["status"].get("phaseTransitionTimestamps") or []
        return {
            "phase": "Running",
            "phaseTransitionTimestamps": [*passed, {"phase": "Running", "phaseTransitionTimestamp": now()}],
            "selinuxContext": "none",
            "migrationMethod": "LiveMigration",
            "conditions": [*kept, able],
        }

    def _move(self, instance: Object) -> None:
        """The next step of its migration; the last one moves the instance to the target's node."""
        state = instance["status"].get("migrationState") or {}
        target = state.get("targetNode")
        if state.get("endTimestamp") and not state.get("failed"):
            self._end_pod(instance, state["sourcePod"])
        if not target or state.get("endTimestamp") or target in self._kubelets.lost:
            return
        if state.get("abortRequested"):
            change = {"abortStatus": "Succeeded", "failed": True, "completed": True, "endTimestamp": now()}
            self._update(instance, {"migrationState": change})
            self._end_pod(instance, state["targetPod"])
        elif not state.get("targetNodeAddress"):
            change = {"targetNodeAddress": _ADDRESS, "targetDirectMigrationNodePorts": _PORTS}
            self._update(instance, {"migrationState": change})
        elif not state.get("startTimestamp"):
            self._update(instance, {"migrationState": {"startTimestamp": now(), "mode": "PreCopy"}})
        elif instance["metadata"]["name"] not in self.held:
            change = {"targetNodeDomainDetected": True, "targetNodeDomainReadyTimestamp": now()}
            change |= {"completed": True, "endTimestamp": now()}
            moved = {"migrationState": change, "nodeName": target, "evacuationNodeName": None}
            metadata = {"labels": {_NODE: target}, "annotations": {"kubevirt.io/eviction-source": None}}
            self._update(instance, moved, **metadata)

    def _plug(self, instance: Object) -> None:
        """Mount what virt-controller has attached to the node."""
        volumes = instance["status"].get("volumeStatus") or []
        plugged = [each for each in volumes if each.get("hotplugVolume") and each.get("phase") == "AttachedToNode"]
        if plugged:
            names = {each["name"] for each in plugged}
            now_ready = [
                {**each, "phase": "Ready", "target": "sda"} if each["name"] in names else each for each in volumes
            ]
            self._update(instance, {"volumeStatus": now_ready})

    def _end_pod(self, instance: Object, name: str) -> None:
        """The launcher that has no domain any more ends."""
        namespace = instance["metadata"]["namespace"]
        for pod in [*self._kubelets.pods.values()]:
            is_its = (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name)
            if is_its and pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]:
                with contextlib.suppress(ApiError):
                    self._admin.patch(pod, {"status": ended(pod, "Succeeded")}, subresource="status")

    def _update(self, instance: Object, status: Object, **metadata: Object) -> None:
        """Write it, unless the instance has changed meanwhile: then there is another step."""
        try:
            self._api.replace(merged(instance, {"metadata": metadata, "status": status}))
        except ApiError as error:
            if error.status not in (http.client.CONFLICT, http.client.NOT_FOUND):
                raise


def merged(target: Object, change: Object) -> Object:
    """The object after a JSON merge patch (RFC 7386)."""
    made = {**target}
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key) or {}, value) if isinstance(value, dict) else value
    return made
