"""Breadth-first search through every state of a world.

What is checked in each state: how many VMs are stranded. Invariant: a trace is as short as any that leads to its
last state.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from modelcheck.replica import REAL, Parts, Timers
from modelcheck.state import Setting, State
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
    """

    states: int
    replicas: int
    pinned: int
    most_stranded: int = 0
    stranded_by: Trace = ()
    beyond: int = 0
    beyond_by: Trace = ()


def search(setting: Setting, parts: Parts = REAL, *, until_wrong: bool = False) -> Found:
    """Visit every state.

    Args:
        setting: the world.
        parts: what replicas are made of.
        until_wrong: end at the first VM that is stranded beyond the bound.
    """

    async def visit() -> Found:
        return _Search(World(setting, parts)).run(until_wrong=until_wrong)

    with asyncio.Runner(loop_factory=Timers) as runner:
        return runner.run(visit())


class _Search:
    def __init__(self, world: World) -> None:
        self._world = world
        self._came_from: dict[State, State | None] = {}

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
                if until_wrong and found.beyond:
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
        return found

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
