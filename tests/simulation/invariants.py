"""What holds after every step, whatever the seed draws. A broken invariant names the seed and how to replay it.

- evidence: a required node had the share-manager of one of the VM's volumes at a time at most STALE_SECONDS ago.
- cordon: no required node is cordoned for longer than STALE_SECONDS. A node that is called cordoned is, or was then.
- target: what we write on a migration's target or on a share-manager pod is never a requirement.
- told: the annotation and the audit log say what the pod's affinity does. What `reunite` tells of a VM's past is true.
- stranded: no virt-launcher pod waits longer than STRANDED_SECONDS because of what we wrote.
- budget, busy, home, calm, will, others, failures, too soon: what reunite promises of a migration.
- starved: no healthy VM waits in two runs for a VM whose migrations do not end well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulation.check_answers import AnswerChecks, CordonChecks
from simulation.check_moves import MoveChecks
from simulation.check_nodes import NodeChecks

if TYPE_CHECKING:
    from simulation.world import World


class Broken(AssertionError):
    """An invariant does not hold.

    `invariant` is its name.
    """

    def __init__(self, text: str, invariant: str) -> None:
        super().__init__(text)
        self.invariant = invariant

    def __reduce__(self) -> tuple[type[Broken], tuple[str, str]]:
        """Let a process pool hand the error on."""
        return Broken, (str(self), self.invariant)


class Invariants:
    """Follows a world and checks it after every step.

    Attributes:
        answers: the checks of what the webhook answers.
        moves: the checks of migrations.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.answers = AnswerChecks(world, self.broken)
        CordonChecks(world, self.broken)
        self.moves = MoveChecks(world, self.broken)
        self._nodes = NodeChecks(world, self.broken, self.answers.asked)
        world.engine.after_step = self._after_step

    def _after_step(self) -> None:
        self.moves.apart.step()
        self._nodes.step()

    def broken(self, invariant: str, what: str) -> Broken:
        """Return the error, with the command that replays it exactly."""
        engine, trace = self.world.engine, "\n  ".join(self.world.engine.last_lines)
        return Broken(f"{invariant}: {what}\nseed {engine.seed}: {self.world.replay}\n  {trace}", invariant)
