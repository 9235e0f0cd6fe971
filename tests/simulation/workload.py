"""What users, guests and operators do in the simulated time, drawn from the seed: two rough days.

In it happens as much as in months, on nodes with little to spare: the invariants are to be met by every case.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Final

from simulation.engine import DAY, HOUR, MINUTE
from simulation.vm import SICK, VM

if TYPE_CHECKING:
    from simulation.world import World

NODES: Final = 6
VMS: Final = 30
MEMORY_GIB: Final = 28  # of a node
FAILING_SHARE: Final = 0.1  # of all migrations: those that fail while they copy memory
PRIORITIES_SHARE: Final = 0.7  # of the seeds: KubeVirt has the feature gate MigrationPriorityQueue
_MEMORY_MIB: Final = (2048, 4096, 6144)  # of a VM
_TWO_DISKS: Final = 0.2  # of the VMs: those with a second disk
_SICK_SHARE: Final = 0.2  # of the VMs: those with one of the ailments of vm.SICK
_ALWAYS_ON: Final = 0.1  # of the VMs: nobody restarts them
_RESTARTS_A_DAY: Final = 4.0  # of each other VM
_STOPS_SHARE: Final = 0.5  # of the restarts; the others are restarts by the guest
_OFF_HOURS: Final = (0.01, 2.0)  # of a stopped VM
_USER_MIGRATIONS: Final = 3  # of each VM in the whole time
_NAMED_SHARE: Final = 0.3  # of the user migrations: those that name their target
_MAINTENANCE_HOURS: Final = 0.5  # until a drained or cordoned node is uncordoned
_DRAIN_EVERY_DAYS: Final = 0.3  # one node after the other
_NODE_LOSSES_DAYS: Final = (0.6, 1.4)
_POWER_CUT_DAY: Final = 1.0  # all nodes are off for half an hour
_BALANCE_EVERY_DAYS: Final = 0.02  # a balancer evicts one VM from the node that has the most
_NODE_OFF_HOURS: Final = 1.0
_POWER_OFF_HOURS: Final = 0.5
_UPGRADE_DAYS: Final = (0.4, 1.2)  # when KubeVirt is upgraded, for two hours
_EVICTION_RETRY_SECONDS: Final = 5.0  # kubectl drain asks again each 5 s
_START_SECONDS: Final = 10 * MINUTE  # in which all VMs start for the first time
_AGAIN_SECONDS: Final = 10 * MINUTE  # a user whose migration was refused tries again


def vms(rng: random.Random) -> list[VM]:
    """Return the VMs, each with one or two disks of its own."""
    always_on = _drawn(rng, _ALWAYS_ON)
    sick = dict(zip(_drawn(rng, _SICK_SHARE), cycle(SICK), strict=False))
    two_disks = _drawn(rng, _TWO_DISKS)
    return [
        VM(
            f"vm-{index:02}",
            rng.choice(_MEMORY_MIB),
            (f"disk-{index:02}", f"data-{index:02}") if index in two_disks else (f"disk-{index:02}",),
            always_on=index in always_on,
            sick=sick.get(index, ""),
        )
        for index in range(VMS)
    ]


def _drawn(rng: random.Random, share: float) -> list[int]:
    return rng.sample(range(VMS), round(VMS * share))


def plan(world: World, until: float) -> None:
    """Put everything that happens up to this time into the queue of the engine."""
    rng = world.engine.rng("workload")
    for vm in world.virt.vms.values():
        world.engine.at(rng.uniform(0, _START_SECONDS), lambda vm=vm: world.virt.start(vm))
        for _ in range(_USER_MIGRATIONS):
            named = rng.random() < _NAMED_SHARE
            node = rng.choice(list(world.nodes.states)) if named else ""
            world.engine.at(rng.uniform(HOUR, until), lambda vm=vm, node=node: _migrate(world, vm, node))
        if not vm.always_on:
            _plan_restarts(world, vm, rng, until)
    nodes = list(world.nodes.states)
    for at, name in zip(_each(_DRAIN_EVERY_DAYS, until, rng), cycle(nodes)):
        world.engine.at(at, lambda name=name: drain(world, name))
    for at in _each(_BALANCE_EVERY_DAYS, until, rng):
        world.engine.at(at, lambda: _balance(world))
    for day in _NODE_LOSSES_DAYS:
        at, name = day * DAY + rng.uniform(-6, 6) * HOUR * _DRAIN_EVERY_DAYS, rng.choice(nodes)
        world.engine.at(at, lambda name=name: world.nodes.die(name))
        world.engine.at(at + _NODE_OFF_HOURS * HOUR, lambda name=name: world.nodes.revive(name))
    for day in _UPGRADE_DAYS:
        world.engine.at(day * DAY, lambda: world.upgrade(until=world.engine.now + 2 * HOUR))
    at = _POWER_CUT_DAY * DAY + rng.uniform(-2, 2) * HOUR
    for name in nodes:
        world.engine.at(at, lambda name=name: world.nodes.die(name, fenced=False))
        world.engine.at(at + _POWER_OFF_HOURS * HOUR, lambda name=name: world.nodes.revive(name))


def _each(days: float, until: float, rng: random.Random) -> Iterator[float]:
    """Yield the times of what happens each so many days, some earlier and some later."""
    at = 0.5 * days
    while at * DAY < until:
        yield at * DAY + rng.uniform(-4, 4) * HOUR * days / 3.0
        at += days


def _plan_restarts(world: World, vm: VM, rng: random.Random, until: float) -> None:
    at = rng.expovariate(_RESTARTS_A_DAY) * DAY
    while at < until:
        if rng.random() < _STOPS_SHARE:
            world.engine.at(at, lambda: world.virt.stop(vm))
            at += rng.uniform(*_OFF_HOURS) * HOUR
            world.engine.at(at, lambda: world.virt.start(vm))
        else:
            world.engine.at(at, lambda: world.virt.guest_restarts(vm))
        at += rng.expovariate(_RESTARTS_A_DAY) * DAY


def _migrate(world: World, vm: VM, node: str) -> None:
    """A user migrates the VM; while it is off or moves already, the user tries again later."""
    if world.migrations.create(vm, "user", node) is None:
        world.engine.after(_AGAIN_SECONDS, lambda: _migrate(world, vm, node))


def drain(world: World, node: str) -> None:
    """Cordon a node, evict its pods, wait until VMs have left, and uncordon the node after its maintenance."""
    if not world.nodes.states[node].alive or world.nodes.states[node].cordoned or world.api.away:
        world.engine.after(HOUR, lambda: drain(world, node))
        return
    world.nodes.cordon(node, cordoned=True)
    for volume in world.longhorn.volumes.values():
        if world.longhorn.node_of(volume) == node:
            world.longhorn.evict(volume)
    _evict_vms(world, node, world.engine.now + 2 * HOUR)


def _balance(world: World) -> None:
    """Evict one VM from the node with the most VMs, as a descheduler does: KubeVirt migrates it."""
    by_node: dict[str, list[VM]] = {}
    for vm in world.virt.vms.values():
        if vm.running and not vm.migration:
            by_node.setdefault(world.virt.node_of(vm), []).append(vm)
    if by_node:
        node = max(sorted(by_node), key=lambda name: len(by_node[name]))
        by_node[node][0].evacuates = node
        world.migrations.create(by_node[node][0], "balancer")


def _evict_vms(world: World, node: str, give_up: float) -> None:
    """Ask again until no VM is left; an operator gives up after two hours."""
    gone = not world.nodes.states[node].alive or world.migrations.evacuate(node)
    if gone or world.engine.now >= give_up:
        pause = _MAINTENANCE_HOURS * HOUR
        world.api.act(pause, lambda: world.nodes.cordon(node, cordoned=False))
    else:
        world.api.act(_EVICTION_RETRY_SECONDS, lambda: _evict_vms(world, node, give_up))
