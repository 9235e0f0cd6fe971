"""VMs that are stopped, and one that runs; and what `candidates -o json` says of each."""

from __future__ import annotations

from typing import Any, Final

from support.drivers.status_runs import NODES, Object, Ran
from support.objects import builders
from support.objects.fleets import disk, running_pod, served

from webhook.core.reasons import ANNOTATION_CO_SCHEDULE


def machine(name: str, *claims: str, asks: str | None = None, labels: Object | None = None, **spec: Any) -> Object:
    """A VirtualMachine with disks of these claims; `asks` is the annotation of its template."""
    volumes = [{"name": f"disk-{claim}", "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    meta = {"annotations": {} if asks is None else {ANNOTATION_CO_SCHEDULE: asks}, "labels": labels or {}}
    template = {"metadata": meta, "spec": {"domain": {}, "volumes": volumes}}
    named = {"name": name, "namespace": "vms"}
    spec = {"template": template, **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": named, "spec": spec}


def pod(vm: str, claim: str, phase: str) -> Object:
    """A pod of a VM that has not opted in, on node-b."""
    made = running_pod(vm, claim, "node-b")
    made["metadata"]["annotations"].pop(ANNOTATION_CO_SCHEDULE)
    return {**made, "status": {"phase": phase}}


def objects() -> list[Object]:
    """The VM `web` runs. `plain` has no share-manager. All others are stopped."""
    return [
        *map(builders.node, NODES),
        *map(builders.longhorn_node, NODES),
        builders.labeled_namespace("vms", None),
        *(each for vm in ("web", "asks", "two") for each in (*disk(f"{vm}-root"), *served(f"{vm}-root", "node-a"))),
        *(each for vm in COLD for each in (*disk(f"{vm}-cold"), builders.share_manager(f"{vm}-cold", state="stopped"))),
        *disk("own", access_modes=["ReadWriteOnce"]),
        *disk("two-own", access_modes=["ReadWriteOnce"]),
        pod("web", "web-root", "Running"),
        machine("web", "web-root"),
        machine("asks", "asks-root", asks="true"),
        machine("off", "off-cold", labels={"app": "shop"}),
        machine("out", "out-cold", asks="false"),
        machine("over", "over-cold"),
        pod("over", "over-cold", "Succeeded"),
        machine("plain", "own"),
        machine("sized", "sized-cold", instancetype={"name": "u1.medium"}),
        machine("two", "two-cold", "two-own", "two-root"),
    ]


COLD: Final = ("off", "out", "over", "sized", "two")
STOPPED: Final = ["asks", "off", "out", "over", "sized", "two"]


def items(told: Ran) -> dict[str, Any]:
    """VM -> its item of -o json."""
    found = {item["name"]: item for item in told.report["items"]}
    assert len(found) == len(told.report["items"])
    return found
