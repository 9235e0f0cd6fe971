"""VMs behind an API server on loopback, and a run of status against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from support.fakes.static_api import StaticApi
from support.objects import builders
from support.objects.fleets import EARLY, LATER, disk, running_pod, served, unschedulable

from webhook import cli

NODES: Final = ("node-a", "node-b", "node-c")
Object = dict[str, Any]


class Ran(NamedTuple):
    """The exit code of a run, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def report(self) -> Any:
        """The output of -o json."""
        return json.loads(self.out)

    @property
    def states(self) -> dict[str, str]:
        """The state of each VM in the output of -o json."""
        return {item["name"]: item["state"] for item in self.report["items"]}


def instance(name: str, *, owner: str | None = "", migratable: str | None = "True", namespace: str = "vms") -> Object:
    """A VirtualMachineInstance. Its VirtualMachine has its name by default; `owner=None` is for none."""
    owners = (
        []
        if owner is None
        else [{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": owner or name, "uid": "for-a-test"}]
    )
    told = {"reason": "DisksNotLiveMigratable", "message": "cannot migrate VMI: PVC disk is not shared"}
    condition = {"type": "LiveMigratable", "status": migratable, **(told if migratable == "False" else {})}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": owners},
        "status": {"conditions": [condition] if migratable else []},
    }


def machine(name: str, **spec: Any) -> Object:
    """The VirtualMachine of a VMI, with these fields of its spec."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "vms"},
        "spec": spec or {"runStrategy": "Always"},
    }


def kubevirt(version: str) -> Object:
    """The KubeVirt object, with this version."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
        "status": {"observedKubeVirtVersion": version},
    }


def pinned(vm: str, claim: str, node: str | None, to: str = "node-b") -> Object:
    """The pod of a VM that the webhook pinned. With node None, kube-scheduler found no node for it."""
    pod = running_pod(vm, claim, node)
    pod["metadata"]["annotations"] |= builders.written(to)
    pod["spec"]["affinity"] = builders.node_affinity(required=[builders.on_node(to)], preferred={to: 100})
    if node is None:
        pod["status"]["conditions"] = [unschedulable(LATER)]
    return pod


def objects() -> list[Object]:
    """Five VMs in `vms`: together, apart, stuck, free and pending; and one in `other` that is together."""
    elsewhere = running_pod("far", "root")
    elsewhere["metadata"]["namespace"] = "other"
    return [
        *map(builders.node, NODES),
        *map(builders.longhorn_node, NODES),
        *disk("root"),
        *served("root", "node-a", LATER),
        running_pod("db", "root"),
        *disk("page"),
        *served("page", "node-b", LATER),
        running_pod("web", "page"),
        instance("web"),
        machine("web"),
        *disk("mail"),
        *served("mail", "node-b", EARLY),
        pinned("mail", "mail", None),
        instance("mail"),
        machine("mail"),
        *disk("cold"),
        builders.share_manager("cold", state="stopped"),
        running_pod("cold", "cold"),
        *disk("fresh"),
        *served("fresh", "node-a", LATER),
        running_pod("new", "fresh", None),
        builders.persistent_volume_claim("root", namespace="other", volume_name="pv-root"),
        elsewhere,
    ]


class Status:
    """Runs status with a kubeconfig for an API server; its context is in namespace vms."""

    def __init__(self, api: StaticApi, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig = api.kubeconfig(directory / "kubeconfig", namespace="vms")
        self._capsys = capsys

    def __call__(self, words: str = "") -> Ran:
        """Run status with these words, which are split at blanks."""
        code = cli.main(["status", *words.split(), "--kubeconfig", str(self.kubeconfig)])
        return Ran(code, *self._capsys.readouterr())
