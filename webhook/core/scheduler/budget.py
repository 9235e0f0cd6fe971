"""How much one admission may look at: steps, shared by all that is asked about other pods and nodes for one pod's sake.

While a call decides, nothing else is answered: no other call, and no probe of the kubelet. It may take 5 ms at most.
What there is to look at is decided by others: how many pods and nodes a cluster has, and how their rules are written.
"""

from __future__ import annotations

from typing import Final

STEPS_MAX: Final = 30_500
"""What may be looked at before the first node is judged. A step is some 60 ns, and 110 where nothing is in the cache of
the core: this is 2 to 3.5 ms, and enough for three rules about 9,000 VMs on 5,000 nodes."""

CANDIDATE_STEPS: Final = 250  # one node judged for a short list: 18 us
_CANDIDATES_LEAST: Final = 32  # of which half may be unfit, and there are still shortlist.LEAST_NODES


class OutOfSteps(Exception):
    """More steps were asked for than are left."""


class Budget:
    """The steps that are left, and those that are kept for candidates."""

    __slots__ = ("kept", "left", "most")

    def __init__(self, most: int = STEPS_MAX) -> None:
        self.most = self.left = most
        self.kept = _CANDIDATES_LEAST * CANDIDATE_STEPS

    def take(self, steps: int) -> None:
        """Take so many, before they are made.

        Raises:
            OutOfSteps: so many are not left. None was taken: for something smaller they may do.
        """
        if steps > self.left:
            raise OutOfSteps
        self.left -= steps

    def take_candidate(self) -> bool:
        """Whether one node more may be judged for a short list; its steps are taken then."""
        if self.kept >= CANDIDATE_STEPS:
            self.kept -= CANDIDATE_STEPS
            return True
        if self.left >= CANDIDATE_STEPS:
            self.left -= CANDIDATE_STEPS
            return True
        return False
