"""What users, guests and operators do in the simulated time, drawn from the seed: a Workload, and the month's.

The issue names the events of the month: stops, starts, guest restarts, one user migration a VM, a rolling drain of all
nodes, two node losses and a power cut. It does not name their rates. Three rates follow from figures of its table:

- VMs ran for 25,510 of 28,800 VM-hours in 15 days (apart / share), so that a VM was off for 2.7 hours a day.
- With ours, VMs were apart for 1,494 hours since a live migration in 15 days, and for about 4,600 in 30. A restart of
  each VM every second day explains the first. That one VM of ten is never restarted after the power cut, which is then
  in the first week, explains the second.

The issue does not name the sizes of the VMs either. They matter without a webhook only. The more alike VMs are, the
less often kube-scheduler puts a VM and its share-manager on one node by chance. All other figures are results.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING, Final

from simulation.engine import DAY, HOUR, MINUTE
from simulation.vm import SICK, VM

if TYPE_CHECKING:
    from simulation.world import World

_EVICTION_RETRY_SECONDS: Final = 5.0  # kubectl drain asks again each 5 s
_START_SECONDS: Final = 10 * MINUTE  # in which all VMs start for the first time
_AGAIN_SECONDS: Final = 10 * MINUTE  # a user whose migration was refused tries again


@dataclass(frozen=True)
class Workload:
    """How large the cluster is, how long it is looked at, and what happens in it.

    Attributes:
        memory_gib: of a node.
        memory_mib: the sizes of VMs, one of which each VM has.
        two_disks: the share of VMs that have a second disk.
        always_on: the share of VMs that nobody restarts.
        restarts_a_day: of each other VM.
        stops_share: of the restarts: the others are restarts by the guest.
        off_hours: how long a stopped VM is off.
        user_migrations: of each VM in the whole time.
        named_share: of the user migrations that name their target.
        failing_share: of all migrations that fail while they copy memory.
        delayed_share: of all migrations that KubeVirt does not begin for some minutes.
        drain_every_days: one node after the other.
        maintenance_hours: until a drained node is uncordoned.
        balance_every_days: a balancer evicts one VM from the node that has the most.
        cordon_every_days: one node after the other is cordoned for the time of a maintenance, and not drained.
        node_losses_days: when a node is lost.
        node_off_hours: how long a lost node is off.
        priorities_share: the share of seeds whose KubeVirt has the feature gate MigrationPriorityQueue.
        sick_share: of the VMs, those with one of the ailments of virt_controller.SICK.
        upgrade_days: when KubeVirt is upgraded, for two hours.
        power_cut_day: when all nodes are off for half an hour; None for never.
    """

    nodes: int = 10
    vms: int = 80
    days: float = 30.0
    memory_gib: int = 128
    memory_mib: tuple[int, ...] = (2048, 4096)
    two_disks: float = 0.0
    always_on: float = 0.1
    restarts_a_day: float = 0.5
    stops_share: float = 0.5
    off_hours: tuple[float, float] = (6.0, 18.0)
    user_migrations: int = 1
    named_share: float = 0.0
    failing_share: float = 0.0
    delayed_share: float = 0.0
    drain_every_days: float = 3.0
    maintenance_hours: float = 1.0
    cordon_every_days: float | None = None
    balance_every_days: float | None = None
    node_losses_days: tuple[float, ...] = (7.2, 22.6)
    node_off_hours: float = 4.0
    power_cut_day: float | None = 5.3
    power_off_hours: float = 0.5
    priorities_share: float = 1.0
    sick_share: float = 0.0
    upgrade_days: tuple[float, ...] = ()


MONTH: Final = Workload()
ROUGH: Final = Workload(
    nodes=6,
    vms=30,
    days=2.0,
    memory_gib=28,
    memory_mib=(2048, 4096, 6144),
    two_disks=0.2,
    restarts_a_day=4.0,
    off_hours=(0.01, 2.0),
    user_migrations=3,
    named_share=0.3,
    failing_share=0.1,
    delayed_share=0.05,
    drain_every_days=0.3,
    maintenance_hours=0.5,
    cordon_every_days=0.15,
    balance_every_days=0.02,
    node_losses_days=(0.6, 1.4),
    node_off_hours=1.0,
    power_cut_day=1.0,
    priorities_share=0.7,
    sick_share=0.2,
    upgrade_days=(0.4, 1.2),
)
"""Two days in which as much happens as in months, on nodes with little to spare: for the invariants."""
SHORT: Final = replace(ROUGH, days=0.2, drain_every_days=0.05, node_losses_days=(0.08,), power_cut_day=0.14)
"""Five hours of it."""
HALF_A_DAY: Final = replace(ROUGH, days=0.6)
"""A node loss and many drains are in it."""
WORKLOADS: Final = {"month": MONTH, "rough": ROUGH, "half a day": HALF_A_DAY, "short": SHORT}


def vms(rng: random.Random, workload: Workload) -> list[VM]:
    """Return the VMs, each with one or two disks of its own."""
    always_on = set(rng.sample(range(workload.vms), round(workload.vms * workload.always_on)))
    sick = dict(
        zip(rng.sample(range(workload.vms), round(workload.vms * workload.sick_share)), cycle(SICK), strict=False)
    )
    two_disks = set(rng.sample(range(workload.vms), round(workload.vms * workload.two_disks)))
    return [
        VM(
            f"vm-{index:02}",
            rng.choice(workload.memory_mib),
            (f"disk-{index:02}", f"data-{index:02}") if index in two_disks else (f"disk-{index:02}",),
            always_on=index in always_on,
            sick=sick.get(index, ""),
        )
        for index in range(workload.vms)
    ]


def plan(world: World) -> None:
    """Put everything that happens into the queue of the engine."""
    rng, workload, until = world.engine.rng("month"), world.workload, world.workload.days * DAY
    for vm in world.virt.vms.values():
        world.engine.at(rng.uniform(0, _START_SECONDS), lambda vm=vm: world.virt.start(vm))
        for _ in range(workload.user_migrations):
            named = rng.random() < workload.named_share
            node = rng.choice(list(world.nodes.states)) if named else ""
            world.engine.at(rng.uniform(HOUR, until), lambda vm=vm, node=node: _migrate(world, vm, node))
        if not vm.always_on:
            _plan_restarts(world, vm, rng, until)
    nodes = list(world.nodes.states)
    for at, name in zip(_drains(workload, rng), nodes * round(workload.days), strict=False):
        world.engine.at(at, lambda name=name: drain(world, name))
    if workload.cordon_every_days is not None:
        times = _drains(replace(workload, drain_every_days=workload.cordon_every_days), rng)
        for at, name in zip(times, nodes * 10, strict=False):
            world.engine.at(at, lambda name=name: _cordon(world, name))
    if workload.balance_every_days is not None:
        for at in _drains(replace(workload, drain_every_days=workload.balance_every_days), rng):
            world.engine.at(at, lambda: _balance(world))
    for day in workload.node_losses_days:
        at, name = day * DAY + rng.uniform(-6, 6) * HOUR * min(1.0, workload.drain_every_days), rng.choice(nodes)
        world.engine.at(at, lambda name=name: world.nodes.die(name))
        world.engine.at(at + workload.node_off_hours * HOUR, lambda name=name: world.nodes.revive(name))
    for day in workload.upgrade_days:
        world.engine.at(day * DAY, lambda: world.upgrade(until=world.engine.now + 2 * HOUR))
    if workload.power_cut_day is not None:
        _plan_power_cut(world, workload.power_cut_day * DAY + rng.uniform(-2, 2) * HOUR)


def _plan_power_cut(world: World, at: float) -> None:
    for name in world.nodes.states:
        world.engine.at(at, lambda name=name: world.nodes.die(name, fenced=False))
        world.engine.at(at + world.workload.power_off_hours * HOUR, lambda name=name: world.nodes.revive(name))


def _drains(workload: Workload, rng: random.Random) -> Iterator[float]:
    at = 0.5 * workload.drain_every_days
    while at < workload.days:
        yield at * DAY + rng.uniform(-4, 4) * HOUR * workload.drain_every_days / 3.0
        at += workload.drain_every_days


def _plan_restarts(world: World, vm: VM, rng: random.Random, until: float) -> None:
    workload = world.workload
    at = rng.expovariate(workload.restarts_a_day) * DAY
    while at < until:
        if rng.random() < workload.stops_share:
            world.engine.at(at, lambda: world.virt.stop(vm))
            at += rng.uniform(*workload.off_hours) * HOUR
            world.engine.at(at, lambda: world.virt.start(vm))
        else:
            world.engine.at(at, lambda: world.virt.guest_restarts(vm))
        at += rng.expovariate(workload.restarts_a_day) * DAY


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
    for volume in world.longhorn.volumes:
        pod = world.longhorn.pod(volume)
        if pod and pod["spec"].get("nodeName") == node:
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


def _cordon(world: World, node: str) -> None:
    """Cordon a node for the time of a maintenance; its pods stay."""
    if not world.nodes.states[node].cordoned and not world.api.away:
        world.nodes.cordon(node, cordoned=True)
        pause = world.workload.maintenance_hours * HOUR
        world.api.act(pause, lambda: world.nodes.cordon(node, cordoned=False))


def _evict_vms(world: World, node: str, give_up: float) -> None:
    """Ask again until no VM is left; an operator gives up after two hours."""
    gone = not world.nodes.states[node].alive or world.migrations.evacuate(node)
    if gone or world.engine.now >= give_up:
        pause = world.workload.maintenance_hours * HOUR
        world.api.act(pause, lambda: world.nodes.cordon(node, cordoned=False))
    else:
        world.api.act(_EVICTION_RETRY_SECONDS, lambda: _evict_vms(world, node, give_up))
