"""The way from kubevirt-scheduler to this webhook, step by step as docs/install/from-kubevirt-scheduler.md says.

The old scheduler is a second kube-scheduler that serves that name. The share-manager's node has a soft taint: a VM goes
there only if the webhook asks for it. Each step starts the VM again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.kubectl import Kubectl
from support.control_plane.rendering import ROOT, TAKE_OVER
from support.control_plane.second_scheduler import second_scheduler
from support.control_plane.vm_starts import NODES, Start, Starting, decision
from support.objects import builders
from support.objects.fleets import served
from support.scenarios.admitting import until, until_watched

from webhook import cli
from webhook.core.reasons import ANNOTATION_TAKE_OVER

Ask = Callable[..., dict[str, Any]]
VM: Final = Start("db01")
NODE: Final = NODES[3]
OLD, STOCK = "kubevirt-scheduler", "default-scheduler"
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
        cluster.become([*tainted, *longhorn, *VM.shelf[:2], *served(VM.volume, NODE)])
        yield started


@contextmanager
def webhook(installed: Installed, *flags: str, component: str | None = None) -> Iterator[None]:
    """A server with these flags, and the API server calls it."""
    with ExitStack() as here:
        installed.enable(component=component)
        here.callback(installed.disable)
        until_watched(here.enter_context(installed.serving(*flags)))
        installed.until_called()
        yield


def waiting(kubectl: Kubectl) -> str:
    """What the guide's command lists: the pods that wait for the old scheduler."""
    (command,) = re.findall(r"^ +kubectl (get pods .*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    said = kubectl.said(*command.split())
    assert said.code == 0, said
    return said.output


def test_each_step_of_the_guide(installed: Installed, starting: Starting, ask: Ask, tmp_path: Path) -> None:
    """From VMs of the old scheduler to VMs that still name it after it is gone; and what `status` shows."""
    kubectl, runs = Kubectl(installed.plane, tmp_path), iter(range(1, 99))

    def started(opt_in: str | None = "true") -> Object:
        """The VM's next start: the last pod is gone, and the new one names the old scheduler."""
        for pod in starting.api.items("v1", "Pod"):
            if pod["metadata"]["namespace"] == builders.NAMESPACE:
                starting.api.delete(pod)
        return starting.vm(VM, str(next(runs)), schedulerName=OLD, opt_in=opt_in)

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
            assert decision(audited).startswith("unchanged: AuditRequired: ")
            assert bound(OLD, audited) != NODE
            assert row() == ("apart", "VmLeftUnchanged")

        with webhook(installed):
            both = started()
            assert decision(both).startswith(f"required on {NODE}: ")
            assert bound(OLD, both) == NODE
            assert row()[0] == "together"

        with webhook(installed, "--take-over-scheduler", OLD, component=TAKE_OVER):
            taken_over = started()
            assert ANNOTATION_TAKE_OVER in taken_over["metadata"]["annotations"]
            assert bound(STOCK, taken_over) == NODE
            assert row()[0] == "together"
            assert waiting(kubectl) == ""

    missed = started()
    assert missed["metadata"]["name"] in waiting(kubectl)
    assert row() == ("pending", "VmOtherScheduler")

    with webhook(installed, "--take-over-scheduler", OLD, component=TAKE_OVER):
        assert bound(STOCK, started()) == NODE
        until(lambda: row()[0] == "together", "a VM with its share-manager")
        assert waiting(kubectl) == ""
