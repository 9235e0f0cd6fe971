"""A cluster behind an API server on loopback, and a run of explain against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from support.drivers.explaining import a_vm, a_vmi
from support.drivers.serving import cluster
from support.fakes.static_api import StaticApi
from support.objects import builders

from webhook import cli

DECISION: Final = "kubevirt-scheduler/decision"
KUBEVIRT: Final = "/apis/kubevirt.io/v1/namespaces/vms"
CLAIMS: Final = "/api/v1/namespaces/vms/persistentvolumeclaims"


class Ran(NamedTuple):
    """Exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def found(self) -> Any:
        """The only explanation of the output."""
        return json.loads(self.out)


def live(value: dict[str, Any], name: str, *, uid: str = "") -> dict[str, Any]:
    """The object as an API server stores it, in namespace vms."""
    return {**value, "metadata": {**value["metadata"], "name": name, "namespace": "vms", "uid": uid}}


def launcher(name: str, node: str | None, decision: str | None, **status: Any) -> dict[str, Any]:
    """A virt-launcher pod of the VMI `uid-db`, with a pin if the decision has one."""
    pod = live(builders.virt_launcher_pod(claims=["disk"]), name)
    pod["metadata"]["labels"]["kubevirt.io/created-by"] = "uid-db"
    pod["metadata"]["ownerReferences"][0] |= {"name": "db", "uid": "uid-db"}
    pod["status"] = status
    if node:
        pod["spec"]["nodeName"] = node
    if decision:
        pod["metadata"]["annotations"] |= {**builders.written(decision.split()[2][:-1]), DECISION: decision}
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [decision.split()[2][:-1]]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod["spec"]["affinity"] = {"nodeAffinity": required}
    return pod


def objects() -> list[dict[str, Any]]:
    """The cluster; two VMs, of which `db` runs; its VMI and its pods."""
    stateful = a_vm("state")
    stateful["spec"]["template"]["spec"]["domain"] = {"devices": {"tpm": {"persistent": True}}}
    state = live(builders.persistent_volume_claim("persistent-state-for-tpm-x2x4z", volume_name="pv-disk"), "")
    state["metadata"] |= {"name": "persistent-state-for-tpm-x2x4z", "labels": {"persistent-state-for": "tpm"}}
    return [
        *cluster(),
        live(a_vm("disk"), "db"),
        live(a_vmi("disk"), "db", uid="uid-db"),
        live(stateful, "tpm"),
        state,
        launcher("virt-launcher-db-old", "node-b", None, phase="Succeeded"),
        launcher("virt-launcher-db-now", "node-b", "required on node-b: ShareManagerPod: for a test", phase="Running"),
        live(builders.virt_launcher_pod(claims=["out"], opt_in=None), "virt-launcher-out"),
    ]


class Explain:
    """Runs explain with a kubeconfig for an API server; its context is in namespace vms."""

    def __init__(self, api: StaticApi, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._kubeconfig = api.kubeconfig(directory / "kubeconfig", namespace="vms")
        self._capsys = capsys

    def __call__(self, words: str, output: str = "json") -> Ran:
        """Run explain with these words, which are split at blanks."""
        code = cli.main(["explain", *words.split(), "--kubeconfig", str(self._kubeconfig), "-o", output])
        return Ran(code, *self._capsys.readouterr())
