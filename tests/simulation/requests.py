"""Requests: what `reunite` asks of the API server, with the time that a request takes, and with lost answers.

A request that is lost on its way does nothing. A request whose answer is lost has done what it asks for: the program
sees the same error for both.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Final

from simulation.api_server import Object
from simulation.migration import HOSTNAME

from webhook.reunite.writer import Result, Written

if TYPE_CHECKING:
    import random

    from simulation.engine import Engine
    from simulation.world import World

_ONE_WAY_SECONDS: Final = (0.003, 0.05)
_NO_ANSWER: Final = Written(Result.UNKNOWN, "no answer")


class Pause:
    """Awaited, it lasts so many simulated seconds. `drive` ends it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __await__(self) -> Generator[float, None, None]:
        """Give the seconds to `drive`."""
        yield self.seconds


def drive(
    engine: Engine, work: Coroutine[Any, None, Any], lives: Callable[[], bool], done: Callable[[Any], object]
) -> None:
    """Run `work` on the simulated clock, and give `done` its result. A process that lives no more does not go on."""

    def step() -> None:
        if not lives():
            work.close()
            return
        try:
            seconds = work.send(None)
        except StopIteration as end:
            done(end.value)
        else:
            engine.after(seconds, step)

    step()


class Requests:
    """The requests of one process: a Writer of the simulation.

    Attributes:
        lost_share: the share of requests that are lost on their way, and the share of lost answers.
        lost_at: when the last request or answer was lost.
    """

    def __init__(self, world: World, name: str, rng: random.Random) -> None:
        self.world = world
        self.name = name
        self.lost_share = 0.0
        self.lost_at = 0.0
        self._rng = rng

    async def create(self, _: str, migration: Object) -> Written:
        """Create the migration, as KubeVirt admits it."""
        if not await self._arrives():
            return _NO_ANSWER
        spec, name = migration["spec"], migration["metadata"]["name"]
        vm, node = self.world.virt.vms[spec["vmiName"]], spec["addedNodeSelector"][HOSTNAME]
        if any(each.name == name for each in (*vm.finished, *self.world.migrations.unfinished)):
            return Written(Result.EXISTS, "it exists")
        self.world.engine.trace(f"{self.name} creates {name} to {node}")
        made = self.world.migrations.create(vm, "reunite", node, name)
        if not await self._arrives():
            return _NO_ANSWER
        return Written(Result.DONE) if made else Written(Result.REFUSED, "KubeVirt refuses it")

    async def _arrives(self) -> bool:
        """Whether a request, or its answer, arrives; after the time that it takes."""
        await Pause(self._rng.uniform(*_ONE_WAY_SECONDS))
        if self._rng.random() >= self.lost_share and not self.world.api.away:
            return True
        self.lost_at = self.world.engine.now
        return False
