"""The scripts of docs/install/from-kubevirt-scheduler.md, on a real API server."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Final

from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Kubectl
from support.control_plane.kubevirt_kinds import crd
from support.control_plane.rendering import ROOT
from support.objects import builders

OLD_ANNOTATION: Final = "scheduler.kubevirt-scheduler.io/co-schedule"
OLD: Final = "kubevirt-scheduler"
GUIDE: Final = ROOT / "docs/install/from-kubevirt-scheduler.md"


def guide(kubectl: Kubectl, begin: str) -> str:
    """What the script of the guide that begins so prints."""
    scripts = [block.partition("```")[0] for block in GUIDE.read_text(encoding="utf-8").split("```sh\n")[1:]]
    (script,) = (dedent(each) for each in scripts if each.strip().startswith(begin))
    said = kubectl.shell(script)
    assert said.code == 0, said
    return said.output


def vm(name: str, scheduler: str) -> Object:
    """A VirtualMachine of this scheduler."""
    annotations = {OLD_ANNOTATION: "true", builders.OPT_IN: "true"}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": builders.NAMESPACE},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {"schedulerName": scheduler}}},
    }


def instance(name: str, scheduler: str) -> Object:
    """A VirtualMachineInstance of this scheduler."""
    meta = {"name": name, "namespace": builders.NAMESPACE}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": meta,
        "spec": {"schedulerName": scheduler},
    }


def test_the_loop_gives_vms_to_the_stock_scheduler(installed: Installed, cluster: ClusterState, tmp_path: Path) -> None:
    """It takes the old scheduler's name and annotation from its VMs, and nothing from others; then none is left.

    A pod that still names it is in the list of those that wait.
    """
    plane, kubectl = installed.plane, Kubectl(installed.plane, tmp_path)
    before = [vm("db01", OLD), vm("db02", OLD), vm("other", "volcano")]
    definitions = [crd("VirtualMachine"), crd("VirtualMachineInstance")]
    cluster.namespace(builders.NAMESPACE)
    for definition in definitions:
        plane.api.delete(definition, missing_ok=True)  # and so the VMs that tests before left behind
    plane.install(definitions)
    waits = plane.api.create(builders.vm_pod("db01", schedulerName=OLD), owned=False)
    try:
        for each in (*before, instance("db01", OLD), instance("other", "volcano")):
            plane.api.create(each)
        assert guide(kubectl, "kubectl get vmi ") == f"{builders.NAMESPACE} db01\n"
        assert guide(kubectl, "kubectl get vm ").count(" patched\n") == 2
        after = [plane.api.get(each) for each in before]
        kept = {"metadata": {"annotations": {builders.OPT_IN: "true"}}, "spec": {}}
        assert [each["spec"]["template"] for each in after] == [kept, kept, before[2]["spec"]["template"]]
        assert guide(kubectl, "kubectl get vm ") == ""
        assert waits["metadata"]["name"] in guide(kubectl, "kubectl get pods ")
    finally:
        plane.api.delete(waits)
        for definition in definitions:
            plane.api.delete(definition)
        plane.install_kubevirt()
