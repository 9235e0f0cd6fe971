"""VMs that name a scheduler which is gone, from the first step of the guide to the last, on a real control plane.

kube-scheduler here has the default profile only, so nobody places a pod that names another scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.rendering import TAKE_OVER
from support.control_plane.vm_starts import NODES, Start, Starting, decision, nodes
from support.objects import builders
from support.scenarios.admitting import until, until_watched

from webhook import cli
from webhook.core.reasons import ANNOTATION_TAKE_OVER

VM: Final = Start("db01")
NODE: Final = NODES[3]
OLD: Final = "kubevirt-scheduler"
LISTED: Final = ("--take-over-scheduler", OLD)
SAYS: Final = f"SchedulerTakenOver: spec.schedulerName was {OLD}, and the webhook wrote default-scheduler"


@contextmanager
def started(installed: Installed, *flags: str, component: str | None = TAKE_OVER) -> Iterator[Starting]:
    """A server with these flags; the share-manager of the VM is on a node."""
    with ExitStack() as here:
        cluster, starting = (here.enter_context(each(installed.plane.api)) for each in (ClusterState, Starting))
        installed.enable(component=component)
        here.callback(installed.disable)
        server = here.enter_context(installed.serving(*flags))
        share_manager = builders.share_manager(VM.volume, state="running", ownerID=NODE)
        cluster.become([*nodes(), *VM.shelf[:2], share_manager, builders.share_manager_pod(VM.volume, nodeName=NODE)])
        until_watched(server)
        installed.until_called()
        yield starting


def taken_over(pod: Object) -> str | None:
    """The annotation of the take-over; None if there is none."""
    text: str | None = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_TAKE_OVER)
    return text


@pytest.fixture
def row(installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What `status` says of the VM."""

    def read() -> dict[str, Any]:
        kubeconfig = installed.plane.kubeconfig(tmp_path / "kubeconfig", installed.plane.admin)
        cli.main(["status", "-n", builders.NAMESPACE, "-o", "json", "--kubeconfig", str(kubeconfig)])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)["items"][0]
        return found

    return read


@pytest.mark.parametrize(("flags", "component"), [((), TAKE_OVER), (LISTED, None)], ids=["no option", "no component"])
def test_off_by_default(installed: Installed, row: Any, flags: tuple[str, ...], component: str | None) -> None:
    """Without the option or without the component the pod waits for its own scheduler, and `status` names it."""
    with started(installed, *flags, component=component) as starting:
        pod = starting.vm(VM, schedulerName=OLD)
        assert (pod["spec"]["schedulerName"], taken_over(pod)) == (OLD, None)
        assert decision(pod).startswith(f"required on {NODE}: ")
        assert (row()["state"], row()["reason"]) == ("pending", "VmOtherScheduler")
        assert row()["because"].endswith(f"waits for the scheduler {OLD} (spec.schedulerName)")


def test_audit_says_what_would_be_replaced(installed: Installed, row: Any) -> None:
    """The pod still waits, and its two annotations have what a webhook that acts would write."""
    with started(installed, *LISTED, "--audit", "on") as starting:
        pod = starting.vm(VM, schedulerName=OLD)
        assert pod["spec"]["schedulerName"] == OLD
        assert (taken_over(pod) or "").startswith("AuditTakeOver: ")
        assert decision(pod).startswith("unchanged: AuditRequired: ")
        assert row()["reason"] == "VmOtherScheduler"


def test_pods_of_the_listed_scheduler_are_placed(installed: Installed, row: Any) -> None:
    """The stock scheduler places the VM with its share-manager; and VMs and migration targets that did not opt in."""
    with started(installed, *LISTED) as starting:
        pod = starting.vm(VM, schedulerName=OLD)
        assert (pod["spec"]["schedulerName"], taken_over(pod)) == ("default-scheduler", SAYS)
        assert decision(pod).startswith(f"required on {NODE}: ShareManagerPod: ")
        assert starting.placed(pod) == NODE
        other = starting.vm(VM, "3", schedulerName=OLD, opt_in=None)
        assert (taken_over(other), decision(other)) == (SAYS, "")
        assert starting.placed(other)
        target = starting.vm(VM, "2", schedulerName=OLD, labels={"kubevirt.io/migrationJobUID": "u"})
        assert (taken_over(target), decision(target)) == (SAYS, "")
        assert starting.placed(target)
        for each in (other, target):
            starting.api.delete(each)
        until(lambda: row()["state"] == "together", "a VM with its share-manager")


def test_a_name_that_is_not_listed_stays(installed: Installed) -> None:
    """Nor does the API server ask about it."""
    with started(installed, *LISTED) as starting:
        pod = starting.vm(VM, schedulerName="volcano")
        assert (pod["spec"]["schedulerName"], taken_over(pod)) == ("volcano", None)
