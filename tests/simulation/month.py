"""The month: what users, guests and operators do to 80 VMs on 10 nodes in 30 days, drawn from the seed.

The issue names the events: stops, starts, guest restarts, one user migration a VM, a rolling drain of all nodes, two
node losses and a power cut. It does not name their rates. Three rates follow from three figures of its table:

- VMs ran for 25,510 of 28,800 VM-hours in 15 days (apart / share), so that a VM was off for 2.7 hours a day.
- With ours, VMs were apart for 1,494 hours since a live migration in 15 days, and for about 4,600 in 30. A restart of
  each VM every second day explains the first. That one VM of ten is never restarted after the power cut, which is then
  in the first week, explains the second.

Everything else of the table is a result, and not put in.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from simulation.engine import DAY, HOUR, MINUTE
from simulation.virt_controller import VM

if TYPE_CHECKING:
    from simulation.world import World

DAYS: Final = 30
_RESTARTS_A_DAY: Final = 0.5
_STOPS_SHARE: Final = 0.5  # of the restarts: the others are guest restarts
_OFF_HOURS: Final = (6.0, 18.0)
ALWAYS_ON_SHARE: Final = 0.1
_DRAIN_EVERY_DAYS: Final = 3.0
_MAINTENANCE_SECONDS: Final = HOUR
_EVICTION_RETRY_SECONDS: Final = 5.0  # kubectl drain asks again each 5 s
_NODE_LOSSES_DAYS: Final = (7.2, 22.6)
_NODE_OFF_SECONDS: Final = 4 * HOUR
_POWER_CUT_DAY: Final = 5.3
_POWER_OFF_SECONDS: Final = 30 * MINUTE
_MEMORY_MIB: Final = (2048, 4096)


def vms(rng: random.Random, many: int) -> list[VM]:
    """Return the VMs, each with one disk of its own."""
    always_on = set(rng.sample(range(many), round(many * ALWAYS_ON_SHARE)))
    return [VM(f"vm-{i:02}", rng.choice(_MEMORY_MIB), (f"disk-{i:02}",), always_on=i in always_on) for i in range(many)]


def plan(world: World) -> None:
    """Put the month into the queue of the engine."""
    rng = world.engine.rng("month")
    for vm in world.virt.vms.values():
        world.engine.at(rng.uniform(0, 10 * MINUTE), lambda vm=vm: world.virt.start(vm))
        _plan_user(world, vm, rng)
    for index, name in enumerate(world.nodes.states):
        at = (index + 0.5) * _DRAIN_EVERY_DAYS * DAY + rng.uniform(-4, 4) * HOUR
        world.engine.at(at, lambda name=name: drain(world, name))
    lost = rng.sample(list(world.nodes.states), len(_NODE_LOSSES_DAYS))
    for name, day in zip(lost, _NODE_LOSSES_DAYS, strict=True):
        at = day * DAY + rng.uniform(-6, 6) * HOUR
        world.engine.at(at, lambda name=name: world.nodes.die(name))
        world.engine.at(at + _NODE_OFF_SECONDS, lambda name=name: world.nodes.revive(name))
    cut = _POWER_CUT_DAY * DAY + rng.uniform(-6, 6) * HOUR
    for name in world.nodes.states:
        world.engine.at(cut, lambda name=name: world.nodes.die(name, fenced=False))
        world.engine.at(cut + _POWER_OFF_SECONDS, lambda name=name: world.nodes.revive(name))


def _plan_user(world: World, vm: VM, rng: random.Random) -> None:
    """One migration at any time of the month; and restarts, unless the VM is always on."""
    world.engine.at(rng.uniform(HOUR, DAYS * DAY), lambda: _migrate(world, vm))
    at = rng.expovariate(_RESTARTS_A_DAY) * DAY
    while at < DAYS * DAY and not vm.always_on:
        if rng.random() < _STOPS_SHARE:
            off = rng.uniform(*_OFF_HOURS) * HOUR
            world.engine.at(at, lambda: world.virt.stop(vm))
            at += off
            world.engine.at(at, lambda: world.virt.start(vm))
        else:
            world.engine.at(at, lambda: world.virt.guest_restarts(vm))
        at += rng.expovariate(_RESTARTS_A_DAY) * DAY


def _migrate(world: World, vm: VM) -> None:
    """A user migrates the VM; while it is off or moves already, the user tries again later."""
    if world.migrations.create(vm, "user") is None:
        world.engine.after(10 * MINUTE, lambda: _migrate(world, vm))


def drain(world: World, node: str) -> None:
    """Cordon a node, evict its pods, wait until VMs have left, and uncordon the node after its maintenance."""
    if not world.nodes.states[node].alive or world.api.away:
        world.engine.after(HOUR, lambda: drain(world, node))
        return
    world.nodes.cordon(node, cordoned=True)
    for volume in world.longhorn.volumes:
        pod = world.longhorn.pod(volume)
        if pod and pod["spec"].get("nodeName") == node:
            world.longhorn.evict(volume)
    _evict_vms(world, node)


def _evict_vms(world: World, node: str) -> None:
    if not world.nodes.states[node].alive or world.migrations.evacuate(node):
        world.api.act(_MAINTENANCE_SECONDS, lambda: world.nodes.cordon(node, cordoned=False))
    else:
        world.api.act(_EVICTION_RETRY_SECONDS, lambda: _evict_vms(world, node))
