"""The simulated clock: events in the order of their times, random numbers from the seed, and the digest of the trace.

Nothing here waits, and nothing reads a clock of this machine. Two events of one time run in the order in which they
were added. Each part of the simulation draws its random numbers from a stream of its own: a part that draws one number
more does not change what the other parts draw.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

EPOCH: Final = datetime(2026, 6, 1, tzinfo=UTC)  # a Monday
MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
_TRACE_SHOWN: Final = 40  # the last lines of the trace, for the message of a broken invariant

Action = Callable[[], object]


class Engine:
    """The clock, the queue of events, and what is drawn from the seed.

    Attributes:
        now: the simulated time, in seconds since EPOCH.
        steps: the number of events that were run.
        after_step: called after each event.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self.steps = 0
        self.after_step: Callable[[], object] = lambda: None
        self.last_lines: deque[str] = deque(maxlen=_TRACE_SHOWN)
        self._queue: list[tuple[float, int, Action]] = []
        self._added = 0
        self._digest = hashlib.sha256()

    def rng(self, name: str) -> random.Random:
        """Return the stream of random numbers of this name. The seed is a text, so that no hash of Python's is used."""
        return random.Random(f"{self.seed}/{name}")  # noqa: S311 - a simulation, not a secret

    def at(self, time: float, action: Action) -> None:
        """Run the action at this time, or now if the time has passed."""
        self._added += 1
        heapq.heappush(self._queue, (max(time, self.now), self._added, action))

    def after(self, seconds: float, action: Action) -> None:
        """Run the action in so many seconds."""
        self.at(self.now + seconds, action)

    def run(self, until: float) -> None:
        """Run every event up to this time, and set the clock to it."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action = heapq.heappop(queue)
            self.steps += 1
            action()
            self.after_step()
        self.now = until

    def trace(self, line: str) -> None:
        """Add a line to the trace, with its time."""
        timed = f"{self.now:.6f} {line}"
        self.last_lines.append(timed)
        self._digest.update(timed.encode())

    @property
    def digest(self) -> str:
        """The digest of the whole trace: equal for two runs that did the same at the same times."""
        return self._digest.hexdigest()

    @property
    def timestamp(self) -> str:
        """The time as the API server writes it: RFC 3339, whole seconds."""
        return rfc3339(int(self.now))


@cache
def rfc3339(seconds: int) -> str:
    """Return the time so many seconds after EPOCH, as the API server writes times."""
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
