"""Stuck VMs in a run of `reunite`: which pods it deletes, and what it reports."""

from __future__ import annotations

import pytest
from support.drivers.status_runs import machine
from support.objects import builders
from support.objects.builders_pods import asking
from support.objects.reunite_vms import ago
from support.scenarios.reunite_runs import KUBEVIRT, NOW, Answering, Object, event, of, vmi, went
from support.scenarios.vm_scenes import scenes

from webhook.core.reunite.reports import EventReason, VMReport
from webhook.objects.manifests import Manifests
from webhook.reunite.run import Run
from webhook.reunite.writer import Result, Written


def stuck_cluster(*more: Object) -> Manifests:
    """VM `pinned` of the scenes waits for node-a, which is lost; node-c has room."""
    lost = builders.node("node-a", ready="Unknown")
    objects = [each for each in scenes() if each["metadata"]["name"] != "virt-launcher-pinned-aaaaa"]
    return of(*objects, lost, waiting(), vmi("pinned"), machine("pinned"), KUBEVIRT, *more)


def waiting() -> Object:
    """The pod of the VM, as kube-scheduler left it five minutes ago."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": ago(300, NOW),
    }
    written = builders.written("node-a")
    pod = builders.vm_pod("pinned", pinned_to=["node-a"], annotations=written, claims=["mail"], uid=builders.OWNER_UID)
    made = asking(pod, {"cpu": "1"})
    made["metadata"] |= {"uid": "u", "resourceVersion": "7", "namespace": "vms"}
    return {**made, "status": {"phase": "Pending", "conditions": [condition]}}


def of_stuck(run: Run) -> list[VMReport]:
    """What is report of the stuck VM."""
    return [each for each in run.reports if each.vm == "pinned"]


def test_a_stuck_vm_is_restarted_only_if_asked() -> None:
    """Its pod is deleted as it was read."""
    writer = Answering()
    assert of_stuck(went(stuck_cluster(), writer)) == []
    (said,) = of_stuck(went(stuck_cluster(), writer, restart_stuck=True))
    assert (said.action, said.reason) == ("restart", EventReason.RESTARTED)
    assert "delete virt-launcher-pinned u 7" in writer.asked
    (would,) = of_stuck(went(stuck_cluster(), restart_stuck=True))
    assert would.message == f"would restart the VM: {said.message}"


@pytest.mark.parametrize(
    ("writer", "reason", "words"),
    [
        pytest.param(
            Answering(Written(Result.EXISTS, "changed")),
            EventReason.WAITING,
            "something else was faster",
            id="the pod changed meanwhile",
        ),
        pytest.param(
            Answering(Written(Result.REFUSED, "a policy")),
            EventReason.REFUSED,
            "not done: a policy",
            id="the API server refuses",
        ),
    ],
)
def test_a_pod_that_is_not_deleted_is_reported(writer: Answering, reason: EventReason, words: str) -> None:
    """Once, for the VM."""
    (said,) = of_stuck(went(stuck_cluster(), writer, restart_stuck=True))
    assert said.reason is reason
    assert words in said.message


@pytest.mark.parametrize(("seconds", "waits"), [(299, True), (300, False)])
def test_a_vm_that_an_earlier_run_restarted_is_awaited(seconds: float, *, waits: bool) -> None:
    """Until its pod is there, or KubeVirt's longest wait is over: what it takes is not known before."""
    earlier = event("pod x waits", seconds, EventReason.RESTARTED, vm="restarted")
    (said,) = of_stuck(went(stuck_cluster(earlier, machine("restarted")), restart_stuck=True))
    assert ("RestartGoesOn: the pod of vms/restarted was deleted" in said.message) is waits


def test_a_vm_that_was_deleted_after_its_restart_is_not_awaited() -> None:
    """No pod of it will come."""
    earlier = event("pod x waits", 9, EventReason.RESTARTED, vm="restarted")
    (said,) = of_stuck(went(stuck_cluster(earlier), restart_stuck=True))
    assert said.action == "restart"
