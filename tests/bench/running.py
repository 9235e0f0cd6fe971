"""Pods that run, as a watch tells of them: every third is a VM with two claims, the others a web server with a sidecar.

As large as a real API server sends them, with managedFields and the status of each container.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sample import sample_pod, set_fields

_VM_SIZES: Final = (1024, 2048, 4096, 8549, 16384, 32768)  # MiB


class Scale(NamedTuple):
    """How much of it; `repeats` is how often what is short is measured."""

    pods: int
    nodes: int
    repeats: int


def _running(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as a kubelet has made it: with the status of each container, and what everybody has set."""
    spec, meta = pod["spec"], pod["metadata"]
    meta |= {"name": "NAME", "namespace": "NAMESPACE", "uid": "00000000-0000-0000-0000-000000000000"}
    spec["nodeName"] = "NODE"
    pod["status"] = {
        "phase": "Running",
        "conditions": [
            {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-02T03:04:05Z"}
            for name in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "podIPs": [{"ip": "10.1.2.3"}],
        "qosClass": "Burstable",
    }
    for part in ("containers", "initContainers"):
        pod["status"][f"{part.removesuffix('s')}Statuses"] = [_status(each) for each in spec.get(part) or ()]
    meta["managedFields"] = [
        {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}
        for manager, fields in (("creator", set_fields(spec)), ("kubelet", set_fields(pod["status"])))
    ]
    return pod


def _status(container: dict[str, Any]) -> dict[str, Any]:
    resources = container.get("resources", {})
    asked = {**resources.get("limits", {}), **resources.get("requests", {})}
    container["resources"] = {**resources, "requests": asked}
    return {
        "name": container["name"],
        "image": container.get("image"),
        "imageID": "example.com/image@sha256:" + "0" * 64,
        "containerID": "containerd://" + "0" * 64,
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
        "resources": container["resources"],
        "allocatedResources": asked,
    }


def _web_server() -> dict[str, Any]:
    """An ordinary pod with a sidecar."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    env = [{"name": f"SETTING_{number}", "value": "a value of some length"} for number in range(12)]
    container = {
        "name": "web",
        "image": "example.com/web:1",
        "env": env,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
    }
    proxy = {**container, "name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}
    spec = {"containers": [container], "initContainers": [proxy], "volumes": [{"name": "token", "projected": {}}]}
    meta = {"labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"}, "annotations": {"checksum": "0" * 64}}
    return {"metadata": meta, "spec": spec}


def _templates() -> tuple[str, str]:
    """The event of a VM's pod and of an ordinary one; what differs from pod to pod is in capitals."""
    vm = sample_pod(("CLAIM-0", "CLAIM-1"))
    compute = vm["spec"]["containers"][0]["resources"]
    compute["requests"] = {**compute["limits"], **compute["requests"], "memory": "MEMORYMi"}
    events = [{"type": "MODIFIED", "object": _running(pod)} for pod in (vm, _web_server())]
    first, second = (json.dumps(event, separators=(",", ":")) for event in events)
    return first, second


def lines(scale: Scale) -> Iterator[bytes]:
    """The event of each pod, as a watch sends it."""
    vm, web = _templates()
    for number in range(scale.pods):
        text = web if number % 3 else vm.replace("CLAIM", f"vm-{number:06}-disk")
        memory = _VM_SIZES[number // 3 % len(_VM_SIZES)]
        text = text.replace('"NAME"', f'"virt-launcher-vm-{number:06}-x7k2p"').replace(
            "NAMESPACE", f"team-{number % 50}"
        )
        yield text.replace('"NODE"', f'"worker-{number % scale.nodes:04}"').replace("MEMORY", str(memory)).encode()
