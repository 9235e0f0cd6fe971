"""Breadth-first search through every state of a world.

What is checked in each state: how many VMs are stranded, and, once nothing is under way, that each replica counts what
the API server has and nothing else. Invariant: a trace is as short as any that leads to its last state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import NamedTuple

from modelcheck.happenings import Expire
from modelcheck.replica import REAL, Parts, Timers
from modelcheck.state import ASKED, PENDING, Setting, State, listed
from modelcheck.world import World

Trace = tuple[tuple[object, ...], ...]


class Found(NamedTuple):
    """What a search has found.

    Attributes:
        states: how many states there are.
        replicas: how many different replicas there are in them.
        pinned: the states with a VM that may run on one node only: without any the search shows nothing.
        most_stranded: the most VMs that are stranded at the same time, with the steps to it.
        beyond: the same, of the VMs beyond one for each place that a pod has without a term for the node.
        outlived: the steps to a promise that outlives its reason, and the numbers that differ.
    """

    states: int
    replicas: int
    pinned: int
    most_stranded: int = 0
    stranded_by: Trace = ()
    beyond: int = 0
    beyond_by: Trace = ()
    outlived_by: Trace = ()


def search(setting: Setting, parts: Parts = REAL, *, promises: bool = False, until_wrong: bool = False) -> Found:
    """Visit every state.

    Args:
        setting: the world.
        parts: what replicas are made of.
        promises: also compare what each replica counts in the end with what the API server has.
        until_wrong: end at the first VM that is stranded beyond the bound, or promise that is not ended.
    """

    async def visit() -> Found:
        world = World(setting, parts, keep_replicas=promises)
        return _Search(world, promises=promises).run(until_wrong=until_wrong)

    with asyncio.Runner(loop_factory=Timers) as runner:
        return runner.run(visit())


class _Search:
    def __init__(self, world: World, *, promises: bool) -> None:
        self._world = world
        self._promises = promises
        self._came_from: dict[State, State | None] = {}
        self._settled: set[Hashable] = set()

    def run(self, *, until_wrong: bool) -> Found:
        world, start = self._world, self._world.start()
        self._came_from[start] = None
        level, found, pinned = [start], Found(0, 0, 0), 0
        while level:
            following = []
            for state in level:
                for _, raw in world.steps(state):
                    after = world.canonical(raw)
                    if after not in self._came_from:
                        self._came_from[after] = state
                        following.append(after)
                pinned += any(len(vm.terms.required) == 1 for vm in state.vms)
                found = self._judge(state, found)
                if until_wrong and (found.beyond or found.outlived_by):
                    following = []
                    break
            level = following
        return found._replace(states=len(self._came_from), replicas=len(world.replicas), pinned=pinned)

    def _judge(self, state: State, found: Found) -> Found:
        stranded = self._world.stranded(state)
        if stranded > found.most_stranded:
            found = found._replace(most_stranded=stranded, stranded_by=self._trace(state))
        if stranded:
            beyond = stranded - self._world.places_of_others(state)
            if beyond > found.beyond:
                found = found._replace(beyond=beyond, beyond_by=self._trace(state))
        if self._promises and not found.outlived_by and self._outlives(state):
            found = found._replace(outlived_by=self._trace(state))
        return found

    def _outlives(self, state: State) -> bool:
        """Return whether a replica counts something else than the API server has, with nothing under way."""
        if any(vm.phase in (ASKED, PENDING) for vm in state.vms):
            return False
        case = (state.vms, state.log, state.others, state.replicas)
        if case in self._settled:
            return False
        self._settled.add(case)
        replicas = self._world.replicas
        fresh = replicas.fresh
        for happening in listed(state):
            fresh, _ = replicas.after(fresh, happening)
        for each in state.replicas:
            number = each.number
            for event in state.log[each.seen :]:
                number, _ = replicas.after(number, event)
            while timers := replicas.timers(number):
                number, _ = replicas.after(number, Expire(timers[0][0]))
            if replicas.promises(number) != replicas.promises(fresh):
                return True
        return False

    def _trace(self, state: State) -> Trace:
        """Return the steps to a state, with the VMs by the numbers that they had from the start."""
        path, before = [state], self._came_from[state]
        while before is not None:
            path.append(before)
            before = self._came_from[before]
        now, trace = path.pop(), []
        while path:
            wanted = path.pop()
            step, now = next(each for each in self._world.steps(now) if self._world.canonical(each[1]) == wanted)
            trace.append(step)
        return tuple(trace)
