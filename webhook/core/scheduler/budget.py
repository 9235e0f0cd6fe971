"""Budget: how many steps one admission may take, for all plugins that look at other pods and nodes together.

While the webhook decides, it answers nothing else: no other call, and no probe of the kubelet. A decision
may take 5 ms at most. Users decide how many pods, nodes and rules there are, so the webhook counts its own steps.
"""

from __future__ import annotations

from typing import Final

STEPS_MAX: Final = 30_500
"""The steps available before the first node is evaluated. A step takes about 60 ns, or 110 ns if nothing is in the
processor's cache. Together they take 2 to 3.5 ms, and are enough for three rules about 9,000 VMs on 5,000 nodes."""

CANDIDATE_STEPS: Final = 250  # one node that is evaluated for a short list: 18 us
_CANDIDATES_LEAST: Final = 32  # if the pod does not fit half of them, shortlist.LEAST_NODES are left


class OutOfSteps(Exception):
    """A plugin needs more steps than are left."""


class Budget:
    """The steps that are left, and those that are kept for the candidates of a short list."""

    __slots__ = ("kept", "left", "most")

    def __init__(self, most: int = STEPS_MAX) -> None:
        self.most = self.left = most
        self.kept = _CANDIDATES_LEAST * CANDIDATE_STEPS

    def take(self, steps: int) -> None:
        """Take this number of steps; call it before the work.

        Raises:
            OutOfSteps: fewer steps are left. None was taken: they can be enough for something smaller.
        """
        if steps > self.left:
            raise OutOfSteps
        self.left -= steps

    def take_candidate(self) -> bool:
        """Take the steps to evaluate one node more for a short list. Return whether there were enough."""
        if self.kept >= CANDIDATE_STEPS:
            self.kept -= CANDIDATE_STEPS
            return True
        if self.left >= CANDIDATE_STEPS:
            self.left -= CANDIDATE_STEPS
            return True
        return False
