"""The world around the replicas: the order of the API server's events, watches, kube-scheduler, and what goes wrong.

`Setting` says how large the world is, what may happen in it, and which assumptions hold. `World.steps` returns all
that can happen next. A watch is only played up to the next question: between two questions nobody can tell how far it
is. Invariant: two states with equal futures are equal as far as their order of events can show it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from modelcheck.pods import NO_TERMS, UNSCHEDULABLE, Shape, Terms
from modelcheck.replica import Ask, Cluster, Expire, Happening, Parts, Replicas, Show, ShowGone, ShowOther, renumbered

ASKED: Final = "asked"
PENDING: Final = ""
REFUSED: Final = "refused"
GONE: Final = "gone"
NEVER: Final = -1
ELSEWHERE: Final = "full-0"
"""A node with places for every pod that no term keeps from it. No share-manager is there."""


class Assumptions(NamedTuple):
    """What webhook.core.scheduler.state.cache.SchedulerCache takes for granted, and what it does not say.

    Attributes:
        shown_first: every watch shows a pod before the pod is bound.
        stored_first: an answer becomes a pod before any pod is bound that the answer did not know of.
        in_order: an answer becomes a pod before an answer that was given with more knowledge.
        kept_in_time: an answer becomes a pod, and the replica's watch shows the pod, before the answer expires.
        stored_before_restart: the answers of a replica that ends are pods or refused before it is ready again.
        only_own_terms: a pod is bound to a node with a share-manager only if a term of the pod names the node.
    """

    shown_first: bool = True
    stored_first: bool = True
    in_order: bool = True
    kept_in_time: bool = True
    stored_before_restart: bool = True
    only_own_terms: bool = True


class Budget(NamedTuple):
    """How often something may happen."""

    vms: int
    lost: int = 0
    refused: int = 0
    repeated: int = 0
    restarts: int = 0
    ended: int = 0
    others: int = 0


class Setting(NamedTuple):
    """One world."""

    cluster: Cluster
    shapes: tuple[Shape, ...]
    budget: Budget
    assumptions: Assumptions = Assumptions()


class VM(NamedTuple):
    """A VM: what the webhook wrote into its pod, what the answer knew of, and when its pod was created."""

    shape: Shape
    phase: str
    terms: Terms = NO_TERMS
    knew: int = 0
    created: int = NEVER


class ReplicaAt(NamedTuple):
    """A replica, how many events its watch has shown, and its answers that are not stored yet."""

    seen: int
    number: int
    owes: tuple[int, ...] = ()


class State(NamedTuple):
    """All that there is. `floor`: what the best informed answer knew that is a pod; `log`: the events."""

    vms: tuple[VM, ...]
    log: tuple[Happening, ...]
    replicas: tuple[ReplicaAt, ...]
    budget: Budget
    floor: int = 0
    others: tuple[str, ...] = ()


_SOME_EVENT: Final = ShowGone(0)

Step = tuple[tuple[object, ...], State]
"""What happens, and the state afterwards. `story.tell` makes words of the first."""


class World:
    """The states of one setting."""

    def __init__(self, setting: Setting, parts: Parts = Parts(), *, keep_replicas: bool = False) -> None:
        """With `keep_replicas` the replicas stay a part of the state after the last question."""
        self.setting = setting
        self._keep_replicas = keep_replicas
        self.replicas = Replicas(setting.cluster, parts, stale_timers=setting.budget.repeated > 0)
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
        return self._places[node] - sum(vm.shape.places for vm in state.vms if vm.phase == node) - state.others.count(node)

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
        if self._keep_replicas or self._may_ask(state):
            return self._in_order(_trimmed(state))
        return _without_replicas(state)

    def _in_order(self, state: State) -> State:
        """Return the state with its VMs in the order of what they are, and with other numbers."""
        vms = state.vms
        order = sorted(range(len(vms)), key=vms.__getitem__)
        if order == list(range(len(vms))):
            return state
        to = tuple(order.index(old) for old in range(len(vms)))
        replicas = (
            ReplicaAt(
                each.seen, self.replicas.renumbered(each.number, to), tuple(sorted(to[index] for index in each.owes))
            )
            for each in state.replicas
        )
        return state._replace(
            vms=tuple(vms[old] for old in order),
            log=tuple(renumbered(event, to) for event in state.log),
            replicas=tuple(sorted(replicas)),
        )

    def _may_ask(self, state: State) -> bool:
        budget = state.budget
        can_be_refused = budget.refused > 0 and any(vm.phase == ASKED for vm in state.vms)
        return bool(
            budget.vms or (budget.repeated and (can_be_refused or any(vm.phase == REFUSED for vm in state.vms)))
        )

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
                    yield ("ends", index, vm.phase), _become(left, index, GONE, ShowGone(index))
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
                            replicas=_replaced(state.replicas, place, now),
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
        for vm in dict.fromkeys(vm for vm, _ in self.replicas.timers(number)):
            first_counts = next(counts for each, counts in self.replicas.timers(number) if each == vm)
            in_time = self.setting.assumptions.kept_in_time and first_counts
            if not in_time or state.vms[vm].phase == REFUSED:
                yield vm

    # The API server.

    def _stored(self, state: State) -> Iterator[Step]:
        """An answer becomes a pod, is lost, or the pod is refused by something else."""
        least = min((vm.knew for vm in state.vms if vm.phase == ASKED), default=0)
        budget = state.budget
        for index, vm in enumerate(state.vms):
            if vm.phase != ASKED:
                continue
            given = state._replace(replicas=_without_debt(state.replicas, index))
            if vm.knew == least or not self.setting.assumptions.in_order:
                known = given._replace(floor=max(state.floor, vm.knew))
                yield ("stored", index), _become(known, index, PENDING)
            if budget.lost and vm.terms != NO_TERMS:
                lost = given._replace(budget=budget._replace(lost=budget.lost - 1))
                lost = _with(lost, index, vm._replace(terms=NO_TERMS))
                yield ("lost", index), _become(lost, index, PENDING)
            if budget.refused:
                refused = given._replace(budget=budget._replace(refused=budget.refused - 1))
                yield ("refused", index), _with(refused, index, vm._replace(phase=REFUSED, terms=NO_TERMS, knew=0))

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
                yield ("bound", index, node), _become(state, index, node)
            if not nodes and vm.phase == PENDING:
                yield ("unschedulable", index), _become(state, index, UNSCHEDULABLE)

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
            yield ("restarts", place), state._replace(replicas=_replaced(state.replicas, place, now), budget=left)


def limits(vm: VM) -> tuple[str, ...]:
    """Return the nodes that the pod may run on; none for any node."""
    return vm.terms.required or vm.terms.shortlist


def named(vm: VM) -> tuple[str, ...]:
    """Return the nodes that a term of the pod names."""
    return (*limits(vm), *vm.terms.preferred)


def listed(state: State) -> Iterator[Happening]:
    """Return what a list at this moment shows."""
    for index, vm in enumerate(state.vms):
        if vm.phase not in (ASKED, REFUSED, GONE):
            yield Show(index, vm.shape, vm.terms, vm.phase)
    for number, node in enumerate(state.others):
        yield ShowOther(f"other-{number}", node)


def _become(state: State, index: int, phase: str, event: Happening | None = None) -> State:
    """Return the state after the API server has stored a change of the pod."""
    vm = state.vms[index]._replace(phase=phase)
    if phase == PENDING:
        vm = vm._replace(created=len(state.log), knew=0)
    event = event or Show(index, vm.shape, vm.terms, phase)
    return _with(state._replace(log=(*state.log, event)), index, vm)


def _with(state: State, index: int, vm: VM) -> State:
    return state._replace(vms=(*state.vms[:index], vm, *state.vms[index + 1 :]))


def _replaced(replicas: tuple[ReplicaAt, ...], place: int, now: ReplicaAt) -> tuple[ReplicaAt, ...]:
    return (*replicas[:place], now, *replicas[place + 1 :])


def _without_debt(replicas: tuple[ReplicaAt, ...], index: int) -> tuple[ReplicaAt, ...]:
    return tuple(
        each._replace(owes=tuple(vm for vm in each.owes if vm != index)) if index in each.owes else each for each in replicas
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
