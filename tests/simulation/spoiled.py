"""What spoils a pin: the node is cordoned or lost between the answer of the webhook and the binding of the pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulation.admission import Admitted
from simulation.check_answers import required_nodes
from simulation.engine import HOUR, MINUTE

if TYPE_CHECKING:
    from simulation.world import World

_AFTER_SECONDS: Final = 0.001  # sooner than the pod is stored
_SHARE: Final = 0.2
_LOST_SHARE: Final = 0.3


def spoil(world: World) -> None:
    """Spoil some of the pins, drawn from the seed."""
    rng, nodes, api = world.engine.rng("spoiled pins"), world.nodes, world.api

    def cordon(node: str) -> None:
        if not nodes.states[node].cordoned and not api.away:
            nodes.cordon(node, cordoned=True)
            api.act(HOUR / 2, lambda: nodes.cordon(node, cordoned=False))

    def lose(node: str) -> None:
        nodes.die(node)
        world.engine.after(10 * MINUTE, lambda: nodes.revive(node))

    def admitted(one: Admitted) -> None:
        pinned = sorted(required_nodes(one.after) - required_nodes(one.pod))
        if pinned and rng.random() < _SHARE and sum(each.alive for each in nodes.states.values()) == len(nodes.states):
            act = lose if rng.random() < _LOST_SHARE else cordon
            world.engine.after(_AFTER_SECONDS, lambda: act(pinned[0]))

    assert world.webhook is not None
    world.webhook.admitted.append(admitted)
