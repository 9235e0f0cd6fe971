"""All replicas that a search has met, each with a number; and one state for all states that have the same future.

Two replicas that always answer alike from now on have one picture, and one number. Invariant: `Replicas.after` returns
the same for the same replica and happening. Replicas, VMs of one kind and the order of events that everybody has seen
make no difference to the future. Invariant: the futures of a state and of its canonical state are the same except for
the numbers of VMs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from modelcheck import pods as model_pods
from modelcheck.pods import NO_TERMS, UNSCHEDULABLE, Ask, Cluster, Happening, ShowGone, Terms, renumbered
from modelcheck.replica import Parts, Picture, Replica
from modelcheck.state import ASKED, NEVER, PENDING, REFUSED, ReplicaAt, State

_SOME_EVENT: Final = ShowGone(0)


class Replicas:
    """The replicas of one cluster, made of the same parts."""

    def __init__(self, cluster: Cluster, parts: Parts) -> None:
        self._cluster, self._parts = cluster, parts
        self._numbers: dict[Picture, int] = {}
        self._pictures: list[Picture] = []
        self._histories: list[tuple[Happening, ...]] = []
        self._after: dict[tuple[int, Happening], tuple[int, Terms]] = {}
        self._renumbered: dict[tuple[int, tuple[int, ...]], int] = {}
        self.fresh = self._number(Replica(cluster, parts).picture(), ())

    def __len__(self) -> int:
        return len(self._histories)

    def after(self, number: int, happening: Happening) -> tuple[int, Terms]:
        """Return the replica after the happening; and, if it was asked, what its answer writes."""
        found = self._after.get((number, happening))
        if found is None:
            history = (*self._histories[number], happening)
            replica, decision = Replica(self._cluster, self._parts), None
            for each in history:
                decision = replica.happens(each)
            terms = NO_TERMS
            if isinstance(happening, Ask) and decision is not None:
                terms = model_pods.patch(happening.shape, decision)
            found = self._after[number, happening] = self._number(replica.picture(), history), terms
        return found

    def timers(self, number: int) -> tuple[int, ...]:
        """Return the VM of each answer of this replica that still counts, and whose time is not over."""
        return self._pictures[number].timers

    def renumbered(self, number: int, to: tuple[int, ...]) -> int:
        """Return the replica to which the same happened, if VM 0 had the number to[0], and so on."""
        found = self._renumbered.get((number, to))
        if found is None:
            history = tuple(renumbered(each, to) for each in self._histories[number])
            found = self._renumbered[number, to] = self._number(self._pictures[number].renumbered(to), history)
        return found

    def _number(self, picture: Picture, history: tuple[Happening, ...]) -> int:
        number = self._numbers.setdefault(picture, len(self._histories))
        if number == len(self._histories):
            self._histories.append(history)
            self._pictures.append(picture)
        return number


def canonical(state: State, replicas: Replicas) -> State:
    """Return the canonical state."""
    if _may_ask(state):
        return _in_order(_trimmed(state), replicas)
    return _without_replicas(state)


def _may_ask(state: State) -> bool:
    budget = state.budget
    can_be_refused = budget.refused > 0 and any(vm.phase == ASKED for vm in state.vms)
    return bool(budget.vms or (budget.repeated and (can_be_refused or any(vm.phase == REFUSED for vm in state.vms))))


def _in_order(state: State, replicas: Replicas) -> State:
    """Return the state with its VMs in the order of what they are, and with other numbers."""
    vms = state.vms
    order = sorted(range(len(vms)), key=vms.__getitem__)
    if order == list(range(len(vms))):
        return state
    to = tuple(order.index(old) for old in range(len(vms)))
    after = (
        ReplicaAt(each.seen, replicas.renumbered(each.number, to), tuple(sorted(to[index] for index in each.owes)))
        for each in state.replicas
    )
    return state._replace(
        vms=tuple(vms[old] for old in order),
        log=tuple(renumbered(event, to) for event in state.log),
        replicas=tuple(sorted(after)),
    )


def _trimmed(state: State) -> State:
    """Return the state with its replicas in one order, and without events that everybody has seen."""
    replicas = tuple(sorted(state.replicas))
    answers = [vm.knew for vm in state.vms if vm.phase == ASKED]
    common = min(replicas[0].seen, *answers) if answers else replicas[0].seen
    if not common:
        return state if replicas == state.replicas else state._replace(replicas=replicas)
    return state._replace(
        vms=tuple(
            vm._replace(knew=vm.knew - common)
            if vm.phase == ASKED
            else vm._replace(created=max(vm.created - common, NEVER))
            for vm in state.vms
        ),
        log=state.log[common:],
        replicas=tuple(each._replace(seen=each.seen - common) for each in replicas),
        floor=max(0, state.floor - common),
    )


def _without_replicas(state: State) -> State:
    """Return the state without what only a later question needs: of events only which answers knew of them is left."""
    answers = sorted({vm.knew for vm in state.vms if vm.phase == ASKED})
    vms = []
    for vm in state.vms:
        if vm.phase == ASKED:
            vms.append(vm._replace(knew=answers.index(vm.knew)))
        elif vm.phase in (PENDING, UNSCHEDULABLE):
            vms.append(vm._replace(created=bisect_right(answers, vm.created) - 1))
        else:
            vms.append(vm._replace(created=NEVER))
    log, budget = (_SOME_EVENT,) * len(answers), state.budget._replace(restarts=0, repeated=0)
    return State(tuple(sorted(vms)), log, (), budget, 0, tuple(sorted(state.others)))
