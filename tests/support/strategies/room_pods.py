"""Pods of every shape that takes something of a node, drawn at random, as an API server stores them.

Amounts come in all spellings, and few: so that sums meet.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

Object = dict[str, Any]

RUNTIME_CLASS: Final = "heavy"
OVERHEAD: Final = {"cpu": "250m", "memory": "120Mi"}
KVM: Final = "devices.kubevirt.io/kvm"

_AMOUNTS: Final = {
    "cpu": ("0", "50m", "100m", "0.25", "1", "1500m", "2", "1001u", "5e-1"),
    "memory": ("0", "64Mi", "128974848", "129M", "1Gi", "1.5Gi", "0.3Gi", "100e6", "1k", "128974848000m", "1500m"),
    "ephemeral-storage": ("50M", "1Gi", "100Ki", "1"),
}
_WHOLE: Final = {  # overcommit is forbidden: requests are limits
    KVM: ("1", "2"),
    "example.com/gpu": ("1", "2", "3"),
    "hugepages-2Mi": ("4Mi", "64Mi"),
    "hugepages-1Gi": ("1Gi", "2Gi"),
}
_OWN: Final = {"cpu": "30", "memory": "100Gi", "hugepages-2Mi": "1Gi"}  # never less than all containers together
# It always has CPU. If a pod sets none, the API server computes a rounded sum, and refuses that sum as invalid.
_PORTS: Final = tuple(
    {"hostPort": 5900, "protocol": protocol, "hostIP": address}
    for protocol in ("TCP", "UDP")
    for address in ("", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::")  # noqa: S104 - nothing listens
)


class PodShapes:
    """Draws pods; the same seed gives the same ones."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def spec(self) -> Object:
        """A PodSpec: containers of all kinds, overhead, the pod's own resources, host ports."""
        random = self._random
        spec: Object = {"containers": [self._container(f"c{n}") for n in range(random.choice((1, 1, 2, 3)))]}
        if random.random() < 0.45:
            spec["initContainers"] = [self._init_container(f"i{n}") for n in range(random.choice((1, 2, 3)))]
        if random.random() < 0.15:
            spec["runtimeClassName"] = RUNTIME_CLASS
            spec["overhead"] = OVERHEAD
        if random.random() < 0.12:
            names = random.choice((["cpu"], ["cpu", "memory"], ["cpu", "hugepages-2Mi"]))
            own = {name: _OWN[name] for name in names}
            spec["resources"] = {"requests": own, "limits": {name: own[name] for name in own if name not in _AMOUNTS}}
        if random.random() < 0.35:
            self._give_ports(spec)
        return spec

    def status(self, spec: Object) -> Object:
        """The status of a running pod that is, or was, being resized."""
        random = self._random
        status: Object = {"phase": "Running"}
        for part, key in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
            status[key] = [self._container_status(each["name"]) for each in spec.get(part, ()) if random.random() < 0.7]
        if "resources" in spec and random.random() < 0.7:
            own = {
                name: random.choice(("20", "40")) if name == "cpu" else "90Gi" for name in spec["resources"]["requests"]
            }
            status |= {"resources": {"requests": own}, "allocatedResources": own}
        if random.random() < 0.6:
            reason = random.choice(("Infeasible", "Deferred"))
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
        return status

    def _container(self, name: str) -> Object:
        random = self._random
        asked = {each: random.choice(texts) for each, texts in _AMOUNTS.items() if random.random() < 0.6}
        whole = {each: random.choice(texts) for each, texts in _WHOLE.items() if random.random() < 0.12}
        if any(each.startswith("hugepages-") for each in whole):
            asked.setdefault("cpu", "100m")  # the API server wants one beside them
        if random.random() < 0.5:  # or limits alone, which the server takes for requests
            asked |= whole
        return {"name": name, "image": "example.com/none", "resources": {"requests": asked, "limits": whole}}

    def _init_container(self, name: str) -> Object:
        sidecar = {"restartPolicy": "Always"} if self._random.random() < 0.5 else {}
        return self._container(name) | sidecar

    def _give_ports(self, spec: Object) -> None:
        """One or two of the node's, to any container; to a pod in the node's network by their defaults."""
        random = self._random
        everyone = [*spec["containers"], *spec.get("initContainers", ())]
        if random.random() < 0.2:
            spec["hostNetwork"] = True
            random.choice(everyone)["ports"] = [{"containerPort": 5900}]
            return
        for port in random.sample(_PORTS, random.choice((1, 2))):
            random.choice(everyone).setdefault("ports", []).append({"containerPort": 80, **port})

    def _container_status(self, name: str) -> Object:
        told: Object = {"name": name, "image": "", "imageID": "", "ready": False, "restartCount": 0}
        random = self._random
        if random.random() < 0.8:
            told["resources"] = {"requests": self._some_amounts()}
        if random.random() < 0.5:
            told["allocatedResources"] = self._some_amounts()
        return told

    def _some_amounts(self) -> Object:
        random = self._random
        return {name: random.choice(_AMOUNTS[name]) for name in ("cpu", "memory") if random.random() < 0.8}
