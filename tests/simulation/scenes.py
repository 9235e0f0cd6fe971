"""Scenes: what happens besides. The node of a pin is cordoned or lost. Guests restart soon after a cordon.

Without a planted fault all invariants hold in each.
"""

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
_RESTART_SECONDS: Final = 20.0  # after a cordon: longer than a watch is ever late, and than an object is believed


def fail_pinned_nodes(world: World) -> None:
    """Cordon or lose the node between the answer and the binding, for some of the pins, drawn from the seed."""
    rng, nodes, api = world.engine.rng("pinned nodes fail"), world.nodes, world.api

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

    world.webhook.admitted.append(admitted)


def restart_after_cordons(world: World) -> None:
    """Let the guests of each node restart soon after its cordon: their share-managers still run there."""

    def restart(node: str) -> None:
        for vm in world.virt.vms.values():
            if vm.running and world.virt.node_of(vm) == node:
                world.virt.guest_restarts(vm)

    def changed(node: str) -> None:
        if world.nodes.states[node].cordoned:
            world.engine.after(_RESTART_SECONDS, lambda: restart(node))

    world.nodes.cordon_changed.append(changed)


SCENES: Final = {
    "pinned nodes fail": fail_pinned_nodes,
    "restarts after cordons": restart_after_cordons,
}
