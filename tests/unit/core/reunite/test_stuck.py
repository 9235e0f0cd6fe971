"""Which stuck VMs are restarted: one row for each rule that says no."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import convert
from support.objects import builders
from support.scenarios.stuck_vms import NOON, SINCE, Object, judged, lost, rule, stuck, waiting

from webhook.core.api.pod import Pod
from webhook.core.reunite.not_yet import Rule
from webhook.core.reunite.stuck import AGAIN_SECONDS, RestartVM


def test_a_vm_whose_node_is_lost_is_restarted() -> None:
    """Another node takes the pod as its user wrote it, and the sentence names pod, nodes and time."""
    found = judged(stuck(), lost(builders.node("n2")))
    assert isinstance(found, RestartVM)
    assert found.node == "n2"
    assert found.sentence == (
        "pod virt-launcher-db01 waits since 2026-11-22T12:00:00Z: the webhook requires n1, and kube-scheduler can't use"
        " that. Node n2 would take the pod. reunite deletes the pod, and KubeVirt starts the VM again"
    )


def test_a_long_list_of_nodes_is_cut_in_the_sentence() -> None:
    """Three names are enough to find the list in the pod."""
    names = ["n1", "n3", "n4", "n5", "n6"]
    pod = convert(waiting(pinned_to=names), Pod)
    assert "requires n1, n3, n4 and 2 more, and" in RestartVM(vm=stuck(), pod=pod, node="n2").sentence


@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure"])
def test_kubevirt_starts_these_again(strategy: str) -> None:
    """virt-controller makes a new VirtualMachineInstance after a failed one."""
    assert isinstance(judged(stuck(run_strategy=strategy), lost(builders.node("n2"))), RestartVM)


@pytest.mark.parametrize(
    ("vm", "expected", "words"),
    [
        pytest.param({"reunite": "false"}, Rule.NOT_ASKED, "is false", id="the VM is kept out"),
        pytest.param({"owner": None}, Rule.NO_VIRTUAL_MACHINE, "owns db01", id="no VirtualMachine"),
        pytest.param({"run_strategy": "Manual"}, Rule.RUN_STRATEGY, "virtctl restart db01 -n vms", id="Manual"),
        pytest.param({"run_strategy": "Once"}, Rule.RUN_STRATEGY, "kubectl delete virtualmachineinstance", id="Once"),
        pytest.param({"run_strategy": "Halted"}, Rule.RUN_STRATEGY, "virtctl start", id="Halted"),
        pytest.param({"run_strategy": None}, Rule.RUN_STRATEGY, "not known", id="could not be read"),
        pytest.param({"start_strategy": "Paused"}, Rule.STARTS_PAUSED, "its user starts it", id="started paused"),
        pytest.param(
            {"failed_starts": 1, "started": SINCE}, Rule.STARTED_AGAIN, "1 starts of the VM failed", id="a second time"
        ),
    ],
)
def test_a_vm_that_is_only_told(vm: dict[str, Any], expected: Rule, words: str) -> None:
    """Its pod stays, although another node would take it."""
    found = judged(stuck(**vm), lost(builders.node("n2")))
    assert rule(found) is expected
    assert words in str(found)


def test_with_the_default_off_only_a_vm_that_asks_is_restarted() -> None:
    """As for migrations: the annotation decides, then the default."""
    view = lost(builders.node("n2"))
    assert "default is off" in str(judged(stuck(), view, default_on=False))
    assert isinstance(judged(stuck(reunite="true"), view, default_on=False), RestartVM)


CONDITION: Final = {"type": "PodScheduled", "status": "False", "lastTransitionTime": SINCE}


@pytest.mark.parametrize(
    ("object_", "expected", "words"),
    [
        pytest.param(waiting(deleting=True), Rule.NOT_STUCK, "being deleted", id="deleted"),
        pytest.param(
            waiting(status={"nominatedNodeName": "n1"}), Rule.NOT_STUCK, "makes room for it on node n1", id="nominated"
        ),
        pytest.param(waiting(annotations={}), Rule.NOT_OURS, "virt-launcher-db01", id="the user's own pin"),
        pytest.param(
            waiting(status={"conditions": [{**CONDITION, "reason": "Unschedulable", "lastTransitionTime": None}]}),
            Rule.STUCK_TOO_SOON,
            "an unknown time",
            id="since when is not known",
        ),
    ],
)
def test_a_pod_that_does_not_wait_for_the_webhooks_nodes_stays(object_: Object, expected: Rule, words: str) -> None:
    """They are the user's, or they may soon be free."""
    found = judged(stuck(object_), lost(builders.node("n2")))
    assert rule(found) is expected
    assert words in str(found)


@pytest.mark.parametrize(
    ("now", "restarted"),
    [pytest.param(NOON + 59.9, False, id="just before"), pytest.param(NOON + 60, True, id="on time")],
)
def test_kube_scheduler_gets_its_time(now: float, *, restarted: bool) -> None:
    """A minute counts from the condition's lastTransitionTime."""
    found = judged(stuck(), lost(builders.node("n2")), now)
    assert isinstance(found, RestartVM) is restarted
    assert restarted or rule(found) is Rule.STUCK_TOO_SOON


@pytest.mark.parametrize(
    ("after", "restarted"),
    [pytest.param(AGAIN_SECONDS - 0.1, False, id="just before"), pytest.param(AGAIN_SECONDS, True, id="on time")],
)
def test_a_vm_that_has_not_run_since_waits_ten_minutes(after: float, *, restarted: bool) -> None:
    """They count from the creation of the new VMI, which is later than the deletion before it."""
    found = judged(stuck(failed_starts=1, started=SINCE), lost(builders.node("n2")), NOON + after)
    assert isinstance(found, RestartVM) is restarted
    assert restarted or rule(found) is Rule.STARTED_AGAIN
