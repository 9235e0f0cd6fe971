"""What a round of `reunite` does with stuck VMs, and what it reports; and the lines of `--once`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, cast

import pytest
from support.fakes.one_vm import ListedCluster, Objects
from support.objects import builders
from support.scenarios.stuck_vms import LIMITS, NOON, Object, judged, lost, stuck, waiting

from webhook.component_base.client.api import Api
from webhook.core.observe.events import Event
from webhook.core.observe.vm_status import VMStatus
from webhook.core.reunite.decide import VM, Plan, Situation
from webhook.core.reunite.limits import KubeVirtLimits, ReuniteLimits
from webhook.core.reunite.not_yet import Rule
from webhook.core.reunite.stuck import RestartVM
from webhook.kube.cache.cluster_cache import ClusterCache
from webhook.reunite.controller import Controller
from webhook.reunite.facts import Facts
from webhook.reunite.reporter import EventReason, Reporter
from webhook.reunite.round import Round
from webhook.reunite.run import table
from webhook.reunite.stuck_vms import StuckPlan, StuckVMs
from webhook.reunite.writer import MigrationWriter

ROOM: Final = lost(builders.node("n2"))
FULL: Final = lost(builders.node("n2", cordoned=True))
WORDS: Final = "Node n2 would take the pod"


class OneVM:
    """The part of Facts that a round asks: one stuck VM, and no migration."""

    def __init__(self, row: VMStatus) -> None:
        self._row = row

    async def situation(self, now: float) -> Situation:
        """Return the VM at this time."""
        vm = VM(row=self._row, started="2026-11-22T11:59:59Z", phase="Scheduling")
        kubevirt = KubeVirtLimits(version=(1, 8))
        return Situation(now=now, vms=[vm], migrations=[], kubevirt=kubevirt, limits=ReuniteLimits())

    def planner(self) -> Any:
        """Return nothing, because no VM is apart."""
        return cast("Any", type("NoPlanner", (), {"step": None}))


class Played:
    """One round with this cluster, and what came of it."""

    def __init__(self, api: Objects, events: Sequence[Event], reporter: Reporter) -> None:
        self.api, self.events, self.reporter = api, events, reporter


async def played(cluster: Any, *, writes: bool = True, answer: int = 200, restarts: bool = True) -> Played:
    """Play one round."""
    pod: Object = waiting()
    pod["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    kubevirt, name = "/apis/kubevirt.io/v1/namespaces/vms", "db01"
    owners = [{"kind": "VirtualMachine", "name": name}]
    api = Objects(
        {
            "/api/v1/namespaces/vms/pods/virt-launcher-db01": pod,
            f"{kubevirt}/virtualmachineinstances/{name}": {"metadata": {"ownerReferences": owners}},
            f"{kubevirt}/virtualmachines/{name}": {"spec": {"runStrategy": "Always"}},
        }
    )
    api.answer = answer
    events: list[Event] = []
    reporter = Reporter(events.append, lambda *_: "uid-of-the-vmi")
    facts = cast("Facts", OneVM(stuck().row))
    stuck_vms = StuckVMs(cast("Api", api), cast("ClusterCache", ListedCluster(cluster)), LIMITS)
    writer = MigrationWriter(cast("Api", api)) if writes else None
    controller = Controller(
        facts.planner, facts, reporter, writer, lambda: NOON + 60, stuck=stuck_vms if restarts else None
    )
    await controller.round()
    return Played(api, events, reporter)


async def test_a_restart_is_an_event_on_the_vm() -> None:
    """With the sentence, and counted."""
    round_ = await played(ROOM)
    (event,) = round_.events
    assert (event.namespace, event.name, event.uid) == ("vms", "db01", "uid-of-the-vmi")
    assert event.reason == EventReason.RESTARTED.code
    assert WORDS in event.message
    assert len(round_.api.deleted) == 1
    assert round_.reporter.restarts == {"done": 1, "refused": 0}


async def test_a_dry_run_tells_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    """It deletes nothing."""
    with caplog.at_level(logging.INFO, "webhook"):
        round_ = await played(ROOM, writes=False)
    assert (round_.api.deleted, [each.reason for each in round_.events]) == ([], ["ReuniteDryRun"])
    assert round_.events[0].message.endswith("; --dry-run=on, so nothing is done")
    assert any(WORDS in str(vars(record).get("fields")) for record in caplog.records)
    assert round_.reporter.restarts == {"done": 0, "refused": 0}


async def test_a_refused_restart_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With the words of the API server; the VM's user gets no Event."""
    round_ = await played(ROOM, answer=409)
    assert round_.events == []
    assert round_.reporter.restarts == {"done": 0, "refused": 1}
    (record,) = [each for each in caplog.records if each.message == "not restarted"]
    assert "the object has been modified" in str(vars(record)["fields"])


async def test_a_vm_that_waits_gets_the_first_rule_that_says_no() -> None:
    """As a VM that is apart."""
    round_ = await played(FULL)
    (event,) = round_.events
    assert (event.reason, event.message.partition(":")[0]) == (EventReason.WAITING.code, Rule.NO_OTHER_NODE.code)
    assert round_.reporter.waiting == {Rule.NO_OTHER_NODE: 1}
    assert round_.api.deleted == []


async def test_without_the_option_stuck_vms_are_left_alone() -> None:
    """Nothing is read, deleted or reported."""
    round_ = await played(ROOM, restarts=False)
    assert (round_.api.asked, round_.api.deleted, round_.events) == ([], [], [])


def test_one_round_is_printed_with_its_restarts() -> None:
    """A line for each stuck VM."""
    nothing = Round(plan=Plan(creates=(), deletes=(), waiting={}), hostnames={})
    restart = judged(stuck(), ROOM)
    assert isinstance(restart, RestartVM)
    lines = table(nothing, StuckPlan(restarts=[restart], waiting={("vms", "db02"): Rule.NOT_OURS.says_no(pod="p")}))
    assert [line.split()[:3] for line in lines.splitlines()[1:]] == [
        ["vms", "db01", "restart"],
        ["vms", "db02", "none"],
    ]
    assert "nothing to do" in table(nothing, StuckPlan())
