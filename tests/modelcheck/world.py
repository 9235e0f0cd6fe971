"""The world around the replicas: the order of the API server's events, watches, kube-scheduler, and what goes wrong.

`World.steps` returns all that can happen next. A watch is only played up to the next question: between two questions
nobody can tell how far it is. Invariant: two states with equal futures are equal as far as their order of events can
show it.
"""

from __future__ import annotations

from collections.abc import Iterator

from modelcheck.pods import NO_TERMS, UNSCHEDULABLE, Ask, Expire, Happening, ShowGone, ShowOther
from modelcheck.replica import REAL, Parts
from modelcheck.replicas import Replicas, canonical
from modelcheck.state import (
    ASKED,
    ELSEWHERE,
    GONE,
    PENDING,
    REFUSED,
    VM,
    ReplicaAt,
    Setting,
    State,
    become,
    limits,
    listed,
    named,
    replaced,
    with_vm,
    without_debt,
)

Step = tuple[tuple[object, ...], State]
"""What happens, and the state afterwards."""


class World:
    """The states of one setting."""

    def __init__(self, setting: Setting, parts: Parts = REAL) -> None:
        self.setting = setting
        self.replicas = Replicas(setting.cluster, parts)
        self._places = dict(setting.cluster.places)
        # Nodes with equally many places are alike: it is enough that the first VM asks for one of them.
        alike = len(set(self._places.values())) == 1
        first = [shape for shape in setting.shapes if not alike or shape.nodes[0] == setting.cluster.names[0]]
        self._first = first or setting.shapes

    def start(self) -> State:
        """Nobody was asked yet."""
        replicas = (ReplicaAt(0, self.replicas.fresh),) * self.setting.cluster.replicas
        return State((), (), replicas, self.setting.budget)

    def free(self, state: State, node: str) -> int:
        """Return how many places of the node no pod has."""
        if node == ELSEWHERE:
            return len(state.vms) + 1
        return (
            self._places[node] - sum(vm.shape.places for vm in state.vms if vm.phase == node) - state.others.count(node)
        )

    def stranded(self, state: State) -> int:
        """Return how many VMs wait for nodes without a place, while other nodes have places."""
        waiting = (vm for vm in state.vms if vm.phase == UNSCHEDULABLE)
        return sum(all(self.free(state, node) < vm.shape.places for node in limits(vm)) for vm in waiting)

    def places_of_others(self, state: State) -> int:
        """Return how many places pods have on a node that none of their terms names."""
        taken = [vm.shape.places for vm in state.vms if vm.phase in self._places and vm.phase not in named(vm)]
        return sum(taken) + len(state.others)

    def canonical(self, state: State) -> State:
        """Return one state for all states that have the same future."""
        return canonical(state, self.replicas)

    def steps(self, state: State) -> Iterator[Step]:
        """Return whatever may come next."""
        yield from self._questions(state)
        yield from self._stored(state)
        yield from self._scheduled(state)
        budget = state.budget
        if budget.restarts:
            yield from self._restarts(state)
        if budget.ended:
            for index, vm in enumerate(state.vms):
                if vm.phase in self._places:
                    left = state._replace(budget=budget._replace(ended=budget.ended - 1))
                    yield ("ends", index, vm.phase), become(left, index, GONE, ShowGone(index))
        if budget.others:
            for node in self._places:
                if self.free(state, node) > 0:
                    event = ShowOther(f"other-{len(state.others)}", node)
                    yield (
                        ("other", node),
                        state._replace(
                            others=(*state.others, node),
                            log=(*state.log, event),
                            budget=budget._replace(others=budget.others - 1),
                        ),
                    )

    # Questions.

    def _questions(self, state: State) -> Iterator[Step]:
        budget, vms = state.budget, state.vms
        asked = [(index, vm.shape) for index, vm in enumerate(vms) if vm.phase == REFUSED] if budget.repeated else []
        repeated = len(asked)
        if budget.vms:
            asked += [(len(vms), shape) for shape in (self.setting.shapes if vms else self._first)]
        if not asked:
            return
        for place, replica in enumerate(state.replicas):
            if replica in state.replicas[:place]:
                continue
            for seen, number, before in self._later(state, replica):
                for turn, (index, shape) in enumerate(asked):
                    left = (
                        budget._replace(repeated=budget.repeated - 1)
                        if turn < repeated
                        else budget._replace(vms=budget.vms - 1)
                    )
                    after, terms = self.replicas.after(number, Ask(index, shape))
                    vm = VM(shape, ASKED, terms, seen)
                    now = ReplicaAt(seen, after, (*replica.owes, index))
                    yield (
                        ("asks", index, shape, place, before, terms),
                        state._replace(
                            vms=(*vms[:index], vm, *vms[index + 1 :]),
                            replicas=replaced(state.replicas, place, now),
                            budget=left,
                        ),
                    )

    def _later(self, state: State, replica: ReplicaAt) -> Iterator[tuple[int, int, tuple[Happening, ...]]]:
        """Return how far the replica's watch may be when it is asked, what the replica is then, and what led to it."""
        found: dict[tuple[int, int], tuple[Happening, ...]] = {(replica.seen, replica.number): ()}
        todo = list(found)
        while todo:
            seen, number = todo.pop()
            following = [(seen, Expire(vm)) for vm in self._expiring(state, number)]
            if seen < len(state.log):
                following.append((seen + 1, state.log[seen]))
            for then, happening in following:
                after, _ = self.replicas.after(number, happening)
                if (then, after) not in found:
                    found[then, after] = (*found[seen, number], happening)
                    todo.append((then, after))
        least = self._least(state)
        return ((seen, number, before) for (seen, number), before in found.items() if seen >= least)

    def _least(self, state: State) -> int:
        assumptions = self.setting.assumptions
        least = state.floor if assumptions.in_order else 0
        if assumptions.shown_first:
            bound = (vm.created + 1 for vm in state.vms if vm.phase in self._places or vm.phase in (ELSEWHERE, GONE))
            least = max(least, max(bound, default=0))
        return least

    def _expiring(self, state: State, number: int) -> Iterator[int]:
        for vm in dict.fromkeys(self.replicas.timers(number)):
            if not self.setting.assumptions.kept_in_time or state.vms[vm].phase == REFUSED:
                yield vm

    # The API server.

    def _stored(self, state: State) -> Iterator[Step]:
        """An answer becomes a pod, is lost, or the pod is refused by something else."""
        least = min((vm.knew for vm in state.vms if vm.phase == ASKED), default=0)
        budget = state.budget
        for index, vm in enumerate(state.vms):
            if vm.phase != ASKED:
                continue
            given = state._replace(replicas=without_debt(state.replicas, index))
            if vm.knew == least or not self.setting.assumptions.in_order:
                known = given._replace(floor=max(state.floor, vm.knew))
                yield ("stored", index), become(known, index, PENDING)
            if budget.lost and vm.terms != NO_TERMS:
                lost = given._replace(budget=budget._replace(lost=budget.lost - 1))
                lost = with_vm(lost, index, vm._replace(terms=NO_TERMS))
                yield ("lost", index), become(lost, index, PENDING)
            if budget.refused:
                refused = given._replace(budget=budget._replace(refused=budget.refused - 1))
                yield ("refused", index), with_vm(refused, index, vm._replace(phase=REFUSED, terms=NO_TERMS, knew=0))

    # kube-scheduler.

    def _scheduled(self, state: State) -> Iterator[Step]:
        """kube-scheduler takes any pod, and binds it to any node that its filters and our preference leave."""
        least = min((vm.knew for vm in state.vms if vm.phase == ASKED), default=len(state.log))
        for index, vm in enumerate(state.vms):
            if vm.phase not in (PENDING, UNSCHEDULABLE):
                continue
            if self.setting.assumptions.stored_first and vm.created >= least:
                continue
            nodes = self._nodes_for(state, vm)
            for node in nodes:
                yield ("bound", index, node), become(state, index, node)
            if not nodes and vm.phase == PENDING:
                yield ("unschedulable", index), become(state, index, UNSCHEDULABLE)

    def _nodes_for(self, state: State, vm: VM) -> list[str]:
        fitting = [node for node in (*self._places, ELSEWHERE) if self.free(state, node) >= vm.shape.places]
        within = limits(vm)
        if within:
            fitting = [node for node in fitting if node in within]
        preferred = [node for node in fitting if node in vm.terms.preferred]
        if preferred or within:
            return preferred or fitting
        return [ELSEWHERE] if self.setting.assumptions.only_own_terms else fitting

    # Replicas end.

    def _restarts(self, state: State) -> Iterator[Step]:
        for place, replica in enumerate(state.replicas):
            if replica in state.replicas[:place] or (replica.owes and self.setting.assumptions.stored_before_restart):
                continue
            number = self.replicas.fresh
            for happening in listed(state):
                number, _ = self.replicas.after(number, happening)
            now = ReplicaAt(len(state.log), number)
            left = state.budget._replace(restarts=state.budget.restarts - 1)
            yield ("restarts", place), state._replace(replicas=replaced(state.replicas, place, now), budget=left)
