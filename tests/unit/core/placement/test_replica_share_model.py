"""No pinned VM is ever without a node: every order of steps of a small cluster, checked one by one.

One node, some replicas of the webhook, the API server, and the scheduler. The model assumes the condition
that webhook.core.scheduler.state.cache.SchedulerCache states. All else is free: how late each replica's watch is, which
replica is called, and which of the created pods kube-scheduler takes next. `make soak` has more VMs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import pytest
from msgspec import convert
from support.models.one_node import OneNodeSnapshot, ViewWithSnapshot
from support.objects import builders
from support.sizes import size

from webhook.core.api.pod import Pod
from webhook.core.decision import NodeFit
from webhook.core.placement.feasibility import evaluate
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.state.cache import PodHandle, SchedulerCache
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.pod_info import PodInfo, PodNode

VMS: Final = size("SHARES_VMS")
CPU: Final = 100
_ASKED: Final = {"name": "compute", "resources": {"requests": {"cpu": f"{CPU}m"}}}
ASKING: Final = IncomingPod.of(convert(builders.virt_launcher_pod(containers=[_ASKED]), Pod), "vms")
ANSWERED, CREATED, HERE, ELSEWHERE = "answered", "created", "bound here", "bound elsewhere"


class VM(NamedTuple):
    """A VM that was answered for: by which replica, which knew of so many events. `created`: that of its creation."""

    replica: int
    knew: int
    pinned: bool
    created: int = 0
    what: str = ANSWERED


class Event(NamedTuple):
    """What a watch shows."""

    vm: int
    what: str


class State(NamedTuple):
    """All that there is. `seen`: how many events each replica has seen."""

    vms: tuple[VM, ...]
    log: tuple[Event, ...]
    seen: tuple[int, ...]
    asked: int


class Stranded(Exception):
    """A VM that may run on the node alone finds no room there."""


class Cluster(NamedTuple):
    """A node with places for so many VMs, and so many replicas."""

    replicas: int
    places: int

    def start(self) -> State:
        """Nobody was asked yet."""
        return State((), (), (0,) * self.replicas, 0)

    def steps(self, state: State) -> Iterator[State]:
        """Whatever may come next."""
        if state.asked < VMS:
            least = max((vm.knew for vm in state.vms if vm.what != ANSWERED), default=0)
            bound = max((vm.created + 1 for vm in state.vms if vm.what in (HERE, ELSEWHERE)), default=0)
            for replica, seen in enumerate(state.seen):
                for knows in range(max(seen, least, bound), len(state.log) + 1):
                    now = (*state.seen[:replica], knows, *state.seen[replica + 1 :])
                    yield from self._asked(state._replace(seen=now), replica)
        yield from self._created(state)
        yield from self._scheduled(state)

    def _asked(self, state: State, replica: int) -> Iterator[State]:
        """A VM whose share-manager is on the node; it may want no more than a preference."""
        told = tuple((vm, index) for index, vm in enumerate(state.vms) if vm.replica == replica)
        verdict = judged(self, told, state.vms, state.log[: state.seen[replica]])
        kinds = [verdict.feasible, False] if verdict.preferable else []
        for pinned in dict.fromkeys(kinds):
            vm = VM(replica, state.seen[replica], pinned)
            yield state._replace(vms=(*state.vms, vm), asked=state.asked + 1)
        if not kinds:
            yield state._replace(asked=state.asked + 1)

    @staticmethod
    def _created(state: State) -> Iterator[State]:
        """The API server stores a pod. One that was answered for with less knowledge has come before it."""
        waiting = [(vm.knew, index) for index, vm in enumerate(state.vms) if vm.what == ANSWERED]
        for knew, index in waiting:
            if knew == min(waiting)[0]:
                yield _become(state, index, CREATED)

    def _scheduled(self, state: State) -> Iterator[State]:
        """kube-scheduler binds the VMs that are steered to the node, in any order, while there is capacity."""
        room = sum(vm.what == HERE for vm in state.vms) < self.places
        least = min((vm.knew for vm in state.vms if vm.what == ANSWERED), default=len(state.log))
        for index, vm in enumerate(state.vms):
            if vm.what == CREATED and vm.created < least:
                if not room and vm.pinned:
                    raise Stranded(state)
                yield _become(state, index, HERE if room else ELSEWHERE)


def _become(state: State, index: int, what: str) -> State:
    created = len(state.log) if what == CREATED else state.vms[index].created
    vms = (*state.vms[:index], state.vms[index]._replace(what=what, created=created), *state.vms[index + 1 :])
    return state._replace(vms=vms, log=(*state.log, Event(index, what)))


@cache
def judged(cluster: Cluster, own: tuple[tuple[VM, int], ...], vms: tuple[VM, ...], seen: tuple[Event, ...]) -> NodeFit:
    """What a replica says that has given these answers, and has seen these events."""
    scheduler_cache, counted, assumed = SchedulerCache(), {}, {}
    answers = {index: vm.knew for vm, index in own}
    for number in range(len(seen) + 1):
        for index in (index for index, knew in answers.items() if knew == number):
            assumed[index] = scheduler_cache.add(_drawn(vms[index], assumed=True))
        if number < len(seen):
            _hear(scheduler_cache, counted, assumed, seen[number], vms)
    has = {"pods": 100, "cpu": cluster.places * CPU}
    there = OneNodeSnapshot(scheduler_cache=scheduler_cache, replicas=cluster.replicas, has=has)
    verdict = evaluate("n1", CycleState(ASKING, there), ViewWithSnapshot(there))
    assert isinstance(verdict, NodeFit)
    return verdict


def _hear(
    scheduler_cache: SchedulerCache,
    counted: dict[int, PodHandle],
    assumed: dict[int, PodHandle],
    event: Event,
    vms: tuple[VM, ...],
) -> None:
    """As webhook.kube.scheduler_cache.assumed_pods does."""
    if event.vm in assumed:
        scheduler_cache.confirm(assumed.pop(event.vm))
    if event.vm in counted:
        scheduler_cache.remove(counted.pop(event.vm))
    if event.what == CREATED:
        counted[event.vm] = scheduler_cache.add(_drawn(vms[event.vm], assumed=False))
    elif event.what == HERE:
        counted[event.vm] = scheduler_cache.add(_pod_info(PodNode(node="n1", bound=True)))


def _drawn(vm: VM, *, assumed: bool) -> PodInfo:
    return _pod_info(PodNode(node="n1", queued=True, pinned=vm.pinned, is_vm=True, assumed=assumed))


def _pod_info(on: PodNode) -> PodInfo:
    return PodInfo("vms", ASKING.usage, None, None, on)


@pytest.mark.soak
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("places", [1, 2, 3])
def test_a_vm_that_is_pinned_finds_its_place(replicas: int, places: int) -> None:
    """Whichever replicas are called, however late their watches are, and whichever VM is scheduled first."""
    cluster = Cluster(replicas, places)
    found, left = {cluster.start()}, [cluster.start()]
    while left:
        for state in cluster.steps(left.pop()):
            if state not in found:
                found.add(state)
                left.append(state)
    assert len(found) > VMS


@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
@pytest.mark.parametrize("places", [1, 2, 3, 5])
def test_vms_that_come_one_after_the_other_take_every_place(replicas: int, places: int) -> None:
    """Each is pinned while there is a place for each replica, and preferred after that: it is bound there, too."""
    cluster, state = Cluster(replicas, places), Cluster(replicas, places).start()
    for number in range(places):
        (state, *_) = cluster._asked(state, number % replicas)
        assert state.vms[-1].pinned is (places - number >= replicas)
        state = _become(_become(state, number, CREATED), number, HERE)
        state = state._replace(seen=(len(state.log),) * replicas)
    assert sum(vm.what == HERE for vm in state.vms) == places
