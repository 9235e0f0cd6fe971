"""The model of kube-apiserver: objects, their versions, watches, and times in which it does not answer.

Upstream: apiserver pkg/storage/cacher (a watch sends each change of a kind in order; a watch that broke goes on where
it ended). Objects are the JSON that the real caches of the webhook decode. Controllers write through `act`: while the
API server is away their writes wait, as a client that retries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from simulation.engine import Action, Engine

from webhook.core.api.kubevirt import LABEL_APP, VIRT_LAUNCHER
from webhook.core.view import Kind

Object = dict[str, Any]
POD: Final = Kind.VIRT_LAUNCHER_POD  # the watch of all pods, as the webhook has it
LONGHORN: Final = "longhorn-system"
SHARE_MANAGER: Final = f"{LONGHORN}/share-manager-"  # and the name of the volume: the key of its pod
VMS: Final = "vms"
_ENCODE: Final = msgspec.json.Encoder().encode
_RETRY_SECONDS: Final = (0.2, 5.0)  # a client's pause after an API server that does not answer


class ApiServer:
    """The objects of the cluster by kind and NAMESPACE/NAME.

    Attributes:
        watches: called with each event of a kind, at the time of the change.
        listeners: called after each change with kind, key and the object, None for a deleted one.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.objects: dict[Kind, dict[str, Object]] = {kind: {} for kind in Kind}
        self.watches: list[Callable[[Kind, bytes], object]] = []
        self.listeners: list[Callable[[Kind, str, Object | None], object]] = []
        self.version = 0
        self.away_until = 0.0
        self._rng = engine.rng("clients")

    @property
    def away(self) -> bool:
        """Whether the API server does not answer now."""
        return self.engine.now < self.away_until

    def act(self, seconds: float, action: Action) -> None:
        """Run a controller's action in so many seconds; while the API server is away the controller tries again."""

        def attempt() -> None:
            if self.away:
                self.engine.at(self.away_until + self._rng.uniform(*_RETRY_SECONDS), attempt)
            else:
                action()

        self.engine.after(seconds, attempt)

    def pod(self, key: str) -> Object | None:
        """Return the pod of this NAMESPACE/NAME."""
        return self.objects[POD].get(key)

    def put(self, kind: Kind, value: Object) -> None:
        """Store a new object, or a new state of one."""
        meta = value["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        known = self.objects[kind].get(key)
        self.objects[kind][key] = value
        self._send(kind, "MODIFIED" if known else "ADDED", value)
        self._told(kind, key, value)

    def delete(self, kind: Kind, key: str) -> None:
        """Remove an object; nothing happens if there is none."""
        value = self.objects[kind].pop(key, None)
        if value is None:
            return
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self._send(kind, "DELETED", value)
        self._told(kind, key, None)

    def list(self, kind: Kind) -> Iterable[Object]:
        """Return what a list of this kind has: the watch of all pods leaves out finished pods by its field selector."""
        if kind is Kind.SHARE_MANAGER_POD:
            return [pod for pod in self.objects[POD].values() if is_share_manager(pod)]
        if kind is POD:
            return [pod for pod in self.objects[POD].values() if not is_over(pod)]
        return self.objects[kind].values()

    def _send(self, kind: Kind, type_: str, value: Object) -> None:
        kinds = [kind, Kind.SHARE_MANAGER_POD] if kind is POD and is_share_manager(value) else [kind]
        for each in kinds:
            left_out = each is POD and is_over(value)
            event = _ENCODE({"type": "DELETED" if left_out else type_, "object": value}) + b"\n"
            for watch in self.watches:
                watch(each, event)

    def _told(self, kind: Kind, key: str, value: Object | None) -> None:
        self.engine.trace(f"{kind} {key} {digest_of(value)}")
        for listener in self.listeners:
            listener(kind, key, value)


def digest_of(value: Object | None) -> str:
    """Return what the trace has of an object: the fields that decide about anything."""
    if value is None:
        return "deleted"
    spec, status = value.get("spec") or {}, value.get("status") or {}
    node = spec.get("nodeName") or status.get("ownerID") or ""
    state = status.get("phase") or status.get("state") or ""
    cordoned = "cordoned" if spec.get("unschedulable") else ""
    deleting = "deleting" if "deletionTimestamp" in value["metadata"] else ""
    return " ".join(filter(None, (node, state, cordoned, deleting)))


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has finished."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_virt_launcher(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is a virt-launcher pod."""
    return bool((pod["metadata"].get("labels") or {}).get(LABEL_APP) == VIRT_LAUNCHER)


def is_share_manager(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is a share-manager pod."""
    return (pod["metadata"].get("labels") or {}).get("longhorn.io/component") == "share-manager"


def key_of(value: Mapping[str, Any]) -> str:
    """Return NAMESPACE/NAME of an object."""
    return f"{value['metadata']['namespace']}/{value['metadata']['name']}"


def uid_of_vmi(value: Mapping[str, Any]) -> str:
    """Return the uid of the VirtualMachineInstance that a virt-launcher pod belongs to; empty for anything else."""
    return str((value["metadata"].get("labels") or {}).get("kubevirt.io/created-by", ""))
