"""The way from kubevirt-scheduler to this webhook, step by step as docs/install/from-kubevirt-scheduler.md says.

The old scheduler is a second kube-scheduler that serves that name. The share-manager's node has a soft taint: a VM goes
there only if the webhook asks for it. Each step starts the VM again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Kubectl
from support.control_plane.kubevirt_kinds import crd
from support.control_plane.rendering import ROOT
from support.control_plane.second_scheduler import second_scheduler
from support.control_plane.vm_starts import NODES, Start, Starting, decision
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine, virtual_machine_instance
from support.objects.fleets import served
from support.scenarios.admitting import until, until_watched

from webhook import cli

Ask = Callable[..., dict[str, Any]]
VM: Final = Start("db01")
NODE: Final = NODES[3]
OLD, STOCK = "kubevirt-scheduler", "default-scheduler"
OLD_ANNOTATION: Final = "scheduler.kubevirt-scheduler.io/co-schedule"
GUIDE: Final = ROOT / "docs/install/from-kubevirt-scheduler.md"


@pytest.fixture
def ask(installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """What a command prints of all VMs, as JSON."""
    kubeconfig = installed.plane.kubeconfig(tmp_path / "kubeconfig", installed.plane.admin)

    def asked(command: str) -> dict[str, Any]:
        cli.main([command, "-A", "-o", "json", "--kubeconfig", str(kubeconfig)])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return asked


@pytest.fixture
def starting(installed: Installed) -> Iterator[Starting]:
    """A stopped VM, and its share-manager on a node with a soft taint."""
    with ClusterState(installed.plane.api) as cluster, Starting(installed.plane.api) as started:
        longhorn = [make(name) for make in (builders.longhorn_node, builders.instance_manager_pod) for name in NODES]
        soft = {NODE: ["old=:PreferNoSchedule"]}
        tainted = [builders.node(name, taints=soft.get(name, ())) for name in NODES]
        described = [make(VM.vm, [VM.vm]) for make in (virtual_machine, virtual_machine_instance)]
        cluster.become([*tainted, *longhorn, *described, *VM.shelf[:2], *served(VM.volume, NODE)])
        yield started


@contextmanager
def webhook(installed: Installed, *flags: str) -> Iterator[None]:
    """A server with these flags, and the API server calls it."""
    with ExitStack() as here:
        installed.enable()
        here.callback(installed.disable)
        until_watched(here.enter_context(installed.serving(*flags)))
        installed.until_called()
        yield


def guide(kubectl: Kubectl, begin: str) -> str:
    """What the script of the guide that begins so prints."""
    scripts = [block.partition("```")[0] for block in GUIDE.read_text(encoding="utf-8").split("```sh\n")[1:]]
    (script,) = (dedent(each) for each in scripts if each.strip().startswith(begin))
    said = kubectl.shell(script)
    assert said.code == 0, said
    return said.output


def waiting(kubectl: Kubectl) -> str:
    """The pods that wait for the old scheduler."""
    return guide(kubectl, "kubectl get pods ")


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
    """It takes the old scheduler's name and annotation from its VMs, and nothing from others; then none is left."""
    plane, kubectl = installed.plane, Kubectl(installed.plane, tmp_path)
    before = [vm("db01", OLD), vm("db02", OLD), vm("other", "volcano")]
    definitions = [crd("VirtualMachine"), crd("VirtualMachineInstance")]
    cluster.namespace(builders.NAMESPACE)
    for definition in definitions:
        plane.api.delete(definition, missing_ok=True)  # and so the VMs that tests before left behind
    plane.install(definitions)
    try:
        for each in (*before, instance("db01", OLD), instance("other", "volcano")):
            plane.api.create(each)
        assert guide(kubectl, "kubectl get vmi ") == f"{builders.NAMESPACE} db01\n"
        assert guide(kubectl, "kubectl get vm ").count(" patched\n") == 2
        after = [plane.api.get(each) for each in before]
        kept = {"metadata": {"annotations": {builders.OPT_IN: "true"}}, "spec": {}}
        assert [each["spec"]["template"] for each in after] == [kept, kept, before[2]["spec"]["template"]]
        assert guide(kubectl, "kubectl get vm ") == ""
    finally:
        for definition in definitions:
            plane.api.delete(definition)
        plane.install_kubevirt()


def test_each_step_of_the_guide(installed: Installed, starting: Starting, ask: Ask, tmp_path: Path) -> None:
    """From VMs of the old scheduler to a VM that still names it after it is gone; and what `status` shows."""
    kubectl, runs = Kubectl(installed.plane, tmp_path), iter(range(1, 99))

    def started(scheduler: str = OLD, opt_in: str | None = "true") -> Object:
        """The VM's next start: the last pod is gone, and the new one names this scheduler."""
        for pod in starting.api.items("v1", "Pod"):
            if pod["metadata"]["namespace"] == builders.NAMESPACE:
                starting.api.delete(pod)
        return starting.vm(VM, str(next(runs)), schedulerName=scheduler, opt_in=opt_in)

    def bound(scheduler: str, pod: Object) -> str:
        assert pod["spec"]["schedulerName"] == scheduler
        return starting.placed(pod)

    def row() -> tuple[str, str]:
        (item,) = ask("status")["items"]
        return item["state"], item["reason"]

    with second_scheduler(installed.plane, [{"schedulerName": OLD}]):
        assert bound(OLD, started(opt_in=None)) != NODE

        with webhook(installed, "--audit", "on"):
            (candidate,) = ask("candidates")["items"]
            assert (candidate["state"], candidate["nextStart"]["nodes"]) == ("apart", [NODE])
            assert candidate["change"].startswith("kubectl patch virtualmachine db01 ")
            assert ask("status")["items"] == []

            audited = started()
            assert decision(audited).startswith("unchanged: AuditPreferred: ")
            assert bound(OLD, audited) != NODE
            assert row() == ("apart", "VmLeftUnchanged")

        with webhook(installed):
            both = started()
            assert decision(both).startswith(f"preferred on {NODE}: ")
            assert "OtherScheduler" in decision(both)
            assert bound(OLD, both) != NODE
            assert row() == ("apart", "VmPreferred")

            asked_for = started(opt_in="required")
            assert decision(asked_for).startswith(f"required on {NODE}: ")
            assert bound(OLD, asked_for) == NODE
            assert row()[0] == "together"

            assert bound(STOCK, started(STOCK)) == NODE
            assert row()[0] == "together"
            assert waiting(kubectl) == ""

    with webhook(installed):
        missed = started()
        assert missed["metadata"]["name"] in waiting(kubectl)
        assert row() == ("pending", "VmOtherScheduler")
        assert bound(STOCK, started(STOCK)) == NODE
        until(lambda: row()[0] == "together", "a VM with its share-manager")
        assert waiting(kubectl) == ""
