"""One state for all states that have the same future.

Replicas, VMs of one kind and the order of events that everybody has seen make no difference. Invariant: the futures of
a state and of its canonical state are the same except for the numbers of VMs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from modelcheck.happenings import ShowGone, renumbered
from modelcheck.pods import UNSCHEDULABLE
from modelcheck.replicas import Replicas
from modelcheck.state import ASKED, NEVER, PENDING, REFUSED, ReplicaAt, State

_SOME_EVENT: Final = ShowGone(0)


def canonical(state: State, replicas: Replicas, *, keep_replicas: bool) -> State:
    """Return the canonical state. With `keep_replicas` the replicas stay in it after the last question."""
    if keep_replicas or _may_ask(state):
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
