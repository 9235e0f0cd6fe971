"""What was promised of nodes a moment ago, by us and, for all that we know, by another replica likewise.

Other replicas' pins are known once their pods are seen. Until then each is taken to have given away what we have given
away just now, as far as calls go to it as they come to us: whose pins are seen tells that. And as we are asked for one
pod more, each is taken to be asked for one, too, or for as many as it was before us: while many VMs start nobody gives
the last place. Where calls go to all alike, each of two replicas gives at most half of what is left, however late they
hear of each other. Where one is asked about all, as the Service's session affinity has it, it sees no pins but its own,
and keeps nothing back until it is told to go.
A VM that starts alone gets the last place; should two replicas be asked for it at once, when neither was asked for many
just before, both give it: one too many. It may be more where calls turn from one replica to another within the moment
that a pod takes to be seen, and the node is all but full.
Invariant: a promise is open until it is settled.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from math import ceil, inf, sqrt
from typing import Final

from webhook.core.requests import Usage
from webhook.core.room import NO_HEADROOM, PODS

OTHER_REPLICAS: Final = 1  # the Deployment of manifests/ has two

_KEPT: Final = 64  # pins of which it is remembered whose they were: then each counts for half
_ENOUGH: Final = 20  # pins, all ours, after which nobody else seems to be asked
_MANY: Final = 6  # VMs that start within so short a time do not start alone
_MANY_SECONDS: Final = 0.25
_IDLE_SECONDS: Final = 1.0
_AHEAD_MAX: Final = 16  # pods that others may be asked about beside one of ours
_DOUBT: Final = 2.0  # how much more often than it seems others are asked; and how many standard deviations are chance


class Promises:
    """Open promises, of which an owner has one. `clock`: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, dict[Hashable, Usage]] = {}  # by node and owner
        self._nodes: dict[Hashable, str] = {}  # by owner
        self._latest = Usage()
        self._asked: deque[float] = deque(maxlen=_MANY)  # when, the last times
        self._many_at = self._others_seen_at = -inf
        self._pinned_at: dict[str, float] = {}  # by node, whoever pinned; the latest last
        self._ours = self._others = 0
        self._leaving = False

    def leave(self) -> None:
        """From now on calls turn to other replicas, one after the other."""
        self._leaving = True

    def ask(self, usage: Usage) -> None:
        """A place was asked for, whether or not it was promised."""
        now = self._clock()
        if self._asked and now - self._asked[-1] > _IDLE_SECONDS:
            self._ours = 0  # this time others may be asked, not we
            if not self._is_now(self._others_seen_at):
                self._others = 0
        self._latest = usage
        self._asked.append(now)
        if len(self._asked) == _MANY and now - self._asked[0] <= _MANY_SECONDS:
            self._many_at = now

    def add(self, owner: Hashable, node: str, usage: Usage) -> None:
        """Open one, in place of an older one."""
        self.settle(owner)
        self._open.setdefault(node, {})[owner] = usage
        self._nodes[owner] = node
        self._pinned(node)

    def settle(self, owner: Hashable) -> None:
        """It was long enough ago, if it is open at all."""
        node = self._nodes.pop(owner, None)
        if node is not None:
            here = self._open[node]
            del here[owner]
            if not here:
                del self._open[node]

    def seen(self, node: str, *, ours: bool) -> None:
        """A pod that was pinned just now is there, by us or by another replica."""
        self._pinned(node)
        if ours:
            self._ours += 1
        else:
            self._others += 1
            self._others_seen_at = self._clock()
        if self._ours + self._others > _KEPT:
            self._ours, self._others = self._ours // 2, ceil(self._others / 2)

    def open(self, node: str) -> int:
        """How many places of this node others may have promised just now; 1 at least while it was pinned to."""
        if self._alone:
            return 0
        turned = self._more_often >= _DOUBT and self._is_now(self._others_seen_at)
        pinned = self._is_now(self._pinned_at.get(node, -inf))
        return max(turned or pinned, ceil(self._unknown(len(self._open.get(node, ())))))

    def contested(self, node: str) -> Mapping[str, int]:
        """How much of each resource others may be giving away that we can't know yet."""
        open_here = self._open.get(node, {})
        if self._alone or not (open_here or self._is_now(self._many_at) or self._is_now(self._others_seen_at)):
            return NO_HEADROOM
        unknown = self._unknown(len(open_here))
        ahead = OTHER_REPLICAS * min(_AHEAD_MAX, max(1, round(self._more_often)))
        taken = {PODS: ceil(unknown) + ahead}
        for resource, amount in self._latest.requests:
            taken[resource] = amount * ahead
        for usage in open_here.values():
            for resource, amount in usage.requests:
                taken[resource] = taken.get(resource, 0) + ceil(amount * unknown / len(open_here))
        return taken

    def _pinned(self, node: str) -> None:
        """A pin to this node is known. Of a node that goes nothing is left."""
        self._pinned_at.pop(node, None)
        self._pinned_at[node] = self._clock()
        while not self._is_now(self._pinned_at[oldest := next(iter(self._pinned_at))]):
            del self._pinned_at[oldest]

    def _is_now(self, at: float) -> bool:
        return self._clock() - at <= _IDLE_SECONDS

    @property
    def _alone(self) -> bool:
        """Whether all calls seem to come to us."""
        return not self._others and self._ours >= _ENOUGH and not self._leaving

    @property
    def _more_often(self) -> float:
        """How many times as often as we others seem to be asked."""
        seen = (self._others + 1) / (self._ours + 1)
        return max(1.0, seen) if self._leaving else seen

    def _unknown(self, promised: int) -> float:
        """How many others may have promised in the time that we have promised so many: no more than we."""
        if self._alone:
            return 0
        likely = promised * OTHER_REPLICAS * min(1.0, _DOUBT * self._more_often)
        return min(promised * OTHER_REPLICAS, likely + _DOUBT * sqrt(likely))
