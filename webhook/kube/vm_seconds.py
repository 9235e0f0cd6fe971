"""VMSeconds: how long VMs have been in each state, in VM-seconds since the process started.

What a reader may assume: no number ever decreases, and no time is counted that no pass saw. Two passes that end more
than twice PASS_SECONDS apart have a pass missing between them: nothing is counted, not even as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.core.observe.vm_status import State

PASS_SECONDS: Final = 10.0  # from the end of one pass to the beginning of the next
_GAP_SECONDS_MAX: Final = 2 * PASS_SECONDS


class VMSeconds:
    """The VM-seconds of one cluster, by state."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(State, 0.0)
        self._before: tuple[Mapping[State, int], bool, float] | None = None

    @property
    def by_state(self) -> Mapping[State, float]:
        """The VM-seconds of every state."""
        return self._seconds

    def add(self, counts: Mapping[State, int], *, late: bool, at: float) -> None:
        """Count the time since the pass before, in the states that the pass before found.

        `at` is when this pass ended, by a clock that never goes back. `late` says that a cache was not up to date. If
        this pass or the pass before was late, the time counts as unknown for every VM.
        """
        before, self._before = self._before, (counts, late, at)
        if before is None:
            return
        counts_before, late_before, at_before = before
        seconds = at - at_before
        if seconds > _GAP_SECONDS_MAX:
            return
        for state, count in counts_before.items():
            self._seconds[State.UNKNOWN if late or late_before else state] += count * seconds
