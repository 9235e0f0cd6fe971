"""Faults that the seed draws: slow watches, lost answers, replicas that die, an API server that is away. And scenes.

A scene is what happens besides: the node of a pin is cordoned or lost, or guests restart soon after a cordon. Without a
planted fault all invariants hold in each.

A slow watch is at most 8 s late. The webhook trusts a watch that is up, and without one believes an object for 10 s
(webhook.kube.informer.connection).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from simulation.admission import Admitted, required_nodes
from simulation.engine import DAY, HOUR, MINUTE

from webhook.core.view import Kind

if TYPE_CHECKING:
    import random

    from simulation.watcher import Watcher
    from simulation.world import World

SLOWEST_WATCH_SECONDS: Final = 8.0
_LOST_SHARE: Final = 0.01
_LOST_REQUESTS_SHARE: Final = 0.1  # of the few requests of reunite, and of their answers
_SLOW_EVERY_SECONDS: Final = 6 * HOUR
_SLOW_FOR_SECONDS: Final = (MINUTE, 20 * MINUTE)
_DEATH_EVERY_SECONDS: Final = 12 * HOUR
_DOWN_SECONDS: Final = (2.0, 5 * MINUTE)
_AWAY_EVERY_SECONDS: Final = 2 * DAY
_AWAY_SECONDS: Final = (2.0, 4 * MINUTE)
_UNWATCHED: Final = {Kind.CLUSTER_AUTOSCALER_STATUS, Kind.VIRTUAL_MACHINE, Kind.VIRTUAL_MACHINE_INSTANCE}  # here
_KINDS: Final = [kind for kind in Kind if kind not in _UNWATCHED]
_AFTER_SECONDS: Final = 0.001  # sooner than the pod is stored
_FAILING_SHARE: Final = 0.2
_LOST_NODES_SHARE: Final = 0.3
_RESTART_SECONDS: Final = 20.0  # after a cordon: longer than a watch is ever late, and than an object is believed


def plan(world: World, until: float) -> None:
    """Draw the faults of the time up to `until`."""
    rng = world.engine.rng("faults")
    world.webhook.lost_share = _LOST_SHARE
    for replica in world.replicas:
        _plan_slow_watches(world, replica, rng, until)
        _plan_deaths(world, rng, until, replica.die)
    for process in world.reuniting:
        process.lost_share = _LOST_REQUESTS_SHARE
        _plan_deaths(world, rng, until, process.die)
    for at, seconds in _times(rng, until, _AWAY_EVERY_SECONDS, _AWAY_SECONDS):
        world.engine.at(at, lambda seconds=seconds: go_away(world, seconds))


def _times(rng: random.Random, until: float, every: float, lasts: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """Yield when a fault begins, and how long it lasts."""
    at = rng.expovariate(1 / every)
    while at < until:
        seconds = rng.uniform(*lasts)
        yield at, seconds
        at += seconds + rng.expovariate(1 / every)


def go_away(world: World, seconds: float) -> None:
    """The API server does not answer for some time; every watch breaks."""
    world.engine.trace(f"the API server is away for {seconds:.3f} s")
    world.api.away_until = world.engine.now + seconds
    for replica in world.replicas:
        replica.disconnect()


def _plan_slow_watches(world: World, watcher: Watcher, rng: random.Random, until: float) -> None:
    """For some minutes the watch of one kind is seconds late."""

    def change(kind: Kind, seconds: float) -> None:
        watcher.late[kind] += seconds

    for at, lasts in _times(rng, until, _SLOW_EVERY_SECONDS, _SLOW_FOR_SECONDS):
        kind, seconds = rng.choice(_KINDS), rng.uniform(0.0, SLOWEST_WATCH_SECONDS - 0.1)
        world.engine.at(at, lambda kind=kind, seconds=seconds: change(kind, seconds))
        world.engine.at(at + lasts, lambda kind=kind, seconds=seconds: change(kind, -seconds))


def _plan_deaths(world: World, rng: random.Random, until: float, die: Callable[[float], object]) -> None:
    for at, seconds in _times(rng, until, _DEATH_EVERY_SECONDS, _DOWN_SECONDS):
        world.engine.at(at, lambda seconds=seconds: die(seconds))


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
        if pinned and rng.random() < _FAILING_SHARE and all(each.alive for each in nodes.states.values()):
            act = lose if rng.random() < _LOST_NODES_SHARE else cordon
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
