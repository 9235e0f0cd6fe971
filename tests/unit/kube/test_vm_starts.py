"""Which events of the cache of pods are starts of VMs, however often the API server makes the cache list again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from support.fakes.watching import RESOURCES, Driver, Says, lists, pages, refuses
from support.models.model_api import event, refusal
from support.objects import builders

from webhook.core.observe.past_decision import Decided
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.core.view import Kind
from webhook.kube.vm_status import VMSeconds, VMStarts

Object = dict[str, Any]
EXPIRED: Final = refuses(refusal(410, "Expired"))
NO_STREAMS: Final = refuses(refusal(400, "BadRequest"))
NONE: Final = {Decided.REQUIRED: 0, Decided.PREFERRED: 0, Decided.UNCHANGED: 0, Decided.NOTHING: 0}


def launcher(
    name: str,
    *,
    version: int = 11,
    decision: str | None = "required",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    opt_in: str | None = "true",
) -> Object:
    """The pod of a VM as the API server stores it, with the webhook's decision."""
    pod = builders.virt_launcher_pod(claims=["disk"], namespace="vms", opt_in=opt_in)
    meta = pod["metadata"]
    meta |= {"name": f"virt-launcher-{name}-aaaaa", "resourceVersion": str(version)}
    meta["labels"] |= dict(labels or {})
    meta["annotations"] |= {**(builders.recorded(decision) if decision else {}), **(annotations or {})}
    return pod


class Starting(Driver):
    """Plays an API server's answers to a cache of pods, and counts the starts."""

    def __init__(self, policy: Policy = Policy()) -> None:  # noqa: B008 - Policy is frozen
        super().__init__(resource=RESOURCES[Kind.VIRT_LAUNCHER_POD])
        self.starts = VMStarts({Kind.VIRT_LAUNCHER_POD: self.machine}, policy)  # type: ignore[arg-type] # one cache will do

    def look(self) -> None:
        """Not needed: the starts are looked at."""

    def counted(self) -> Mapping[Decided, int]:
        """Return the decisions with a start."""
        return {decided: count for decided, count in self.starts.by_decision.items() if count}


def added(*pods: Object) -> Says:
    """A watch that shows these pods for the first time."""
    return Says(b"".join(event("ADDED", pod) for pod in pods), seconds=300)


def test_nothing_is_known_before_the_first_list() -> None:
    """A count of 0 would say that no VM has started."""
    driver = Starting()
    driver.play(refuses(refusal(403, "Forbidden")))
    assert driver.starts.by_decision == {}
    driver.play(lists())
    assert driver.starts.by_decision == NONE


def test_a_pod_of_the_first_list_has_not_started_now() -> None:
    """It may have started weeks ago, whether the list comes as a stream or by pages, and whatever broke before."""
    driver = Starting()
    driver.play(Says(event("ADDED", launcher("a", version=5)), error="reset"), lists(launcher("a", version=5)))
    assert driver.counted() == {}
    driver = Starting()
    driver.play(NO_STREAMS, pages(launcher("a", version=5), continue_="t2"), pages(launcher("b", version=6)))
    assert driver.counted() == {}


def test_every_start_is_counted_once_however_short_it_was() -> None:
    """219 VMs that start before anybody asks, and a VM that stops and starts again meanwhile."""
    pods = [launcher(f"vm{number}", version=11 + number) for number in range(219)]
    driver = Starting()
    driver.play(lists(), added(*pods))
    assert driver.counted() == {Decided.REQUIRED: 219}
    again = launcher("vm0", version=401)
    again["metadata"]["name"] = "virt-launcher-vm0-bbbbb"
    gone = event("DELETED", {**pods[0], "metadata": {**pods[0]["metadata"], "resourceVersion": "400"}})
    driver.play(Says(gone + event("ADDED", again) + event("MODIFIED", again), seconds=300))
    assert driver.counted() == {Decided.REQUIRED: 220}


@pytest.mark.parametrize("ends", [Says(error="reset"), Says(b"<html>\n"), Says(status=500), Says(seconds=300)])
def test_a_watch_that_continues_counts_what_it_missed_and_nothing_twice(ends: Says) -> None:
    """It continues at the last event that came."""
    driver = Starting()
    driver.play(lists(), added(launcher("a")), ends, added(launcher("b", version=12)))
    assert driver.counted() == {Decided.REQUIRED: 2}


def test_a_new_list_adds_the_pods_that_the_watch_missed() -> None:
    """Pods that were there before are not counted again, nor when a first try of the list breaks off."""
    driver = Starting()
    both = launcher("a"), launcher("b", version=15)
    cut = Says(event("ADDED", both[0]) + event("ADDED", both[1]), error="reset")
    driver.play(lists(), added(both[0]), EXPIRED, cut)
    assert driver.counted() == {Decided.REQUIRED: 1}
    driver.play(lists(*both, version=20), EXPIRED, lists(*both, version=30))
    assert driver.counted() == {Decided.REQUIRED: 2}
    bound = {**both[0], "spec": {**both[0]["spec"], "nodeName": "node-a"}}
    driver.play(EXPIRED, lists(bound, both[1], version=40))
    assert driver.counted() == {Decided.REQUIRED: 2}


@pytest.mark.parametrize(
    ("decision", "decided"),
    [
        ("required", Decided.REQUIRED),
        ("preferred", Decided.PREFERRED),
        ("unchanged", Decided.UNCHANGED),
        ("what a user wrote", Decided.NOTHING),
        (None, Decided.NOTHING),
    ],
)
def test_a_start_is_counted_by_the_decision_for_its_pod(decision: str | None, decided: Decided) -> None:
    """An alert needs to know whether the API server called the webhook."""
    driver = Starting()
    driver.play(lists(), added(launcher("a", decision=decision)))
    assert driver.counted() == {decided: 1}


NO_STARTS: Final = {
    "the target of a live migration": launcher("a", labels={"kubevirt.io/migrationJobUID": "x"}),
    "a pod that receives another cluster's VM": launcher(
        "a", annotations={"kubevirt.io/create-migration-target": "true"}
    ),
    "a pod that only provisions a disk": launcher("a", annotations={"kubevirt.io/ephemeral-provisioning": "true"}),
    "a VM that did not ask": launcher("a", opt_in=None),
    "a VM that asked not to": launcher("a", opt_in="false"),
    "a pod of no VM": launcher("a", labels={"kubevirt.io": "hotplug-disk"}),
}


@pytest.mark.parametrize("pod", NO_STARTS.values(), ids=NO_STARTS)
def test_another_pod_is_no_start(pod: Object) -> None:
    """Only a pod in which a VM starts that asked for co-scheduling."""
    driver = Starting()
    driver.play(lists(), added(pod))
    assert driver.counted() == {}


NOBODY: Final = dict.fromkeys(State, 0)
ONE_EACH: Final = dict.fromkeys(State, 1)
Pass = tuple[float, Mapping[State, int], bool]  # when it ended, the VMs by state, whether a cache was late

TWO: Final = {**NOBODY, State.TOGETHER: 2}
APART: Final = {**NOBODY, State.TOGETHER: 1, State.APART: 1}
CASES: Final[dict[str, tuple[list[Pass], dict[State, float]]]] = {
    "no pass": ([], {}),
    "one pass": ([(5, TWO, False)], {}),
    "two passes": ([(5, TWO, False), (15, TWO, False)], {State.TOGETHER: 20}),
    "the states of the pass before": (
        [(0, TWO, False), (10, APART, False), (22, TWO, False)],
        {State.TOGETHER: 32, State.APART: 12},
    ),
    "every state": ([(0, ONE_EACH, False), (10, ONE_EACH, False)], dict.fromkeys(State, 10)),
    "two passes at one time": ([(0, TWO, False), (0, TWO, False)], {}),
    "just not a pass missing": ([(0, TWO, False), (20, TWO, False)], {State.TOGETHER: 40}),
    "a pass missing": ([(0, TWO, False), (20.001, TWO, False)], {}),
    "a suspended process": (
        [(0, TWO, False), (10, TWO, False), (3610, APART, False), (3620, APART, False)],
        {State.TOGETHER: 30, State.APART: 10},
    ),
    "a suspended process with late caches": ([(0, TWO, True), (3600, TWO, True)], {}),
    "a cache that becomes late": ([(0, APART, False), (10, APART, True)], {State.UNKNOWN: 20}),
    "a cache that was late": ([(0, APART, True), (10, APART, False)], {State.UNKNOWN: 20}),
    "a cache that was late for a pass": (
        [(0, TWO, False), (10, TWO, False), (20, TWO, True), (30, TWO, False), (40, TWO, False)],
        {State.TOGETHER: 40, State.UNKNOWN: 40},
    ),
}


@pytest.mark.parametrize(("passes", "counted"), CASES.values(), ids=CASES)
def test_time_is_counted_only_if_passes_saw_it(passes: list[Pass], counted: dict[State, float]) -> None:
    """Every state has a number, also if no VM was in it."""
    seconds = VMSeconds()
    for at, counts, late in passes:
        seconds.add(counts, late=late, at=at)
    assert seconds.by_state == {**NOBODY, **counted}
