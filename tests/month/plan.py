"""What happens in the month: one seed, one list of events, the same for every contestant.

Every event is at a whole hour. What people and guests do with several VMs in one hour, they do at once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

DAY_HOURS: Final = 24.0
RESTARTS_A_DAY: Final = 0.25
"""Of a VM: a third each are stops, restarts by the guest, and quick restarts."""
OFF_HOURS: Final = (6.0, 18.0)
MIGRATIONS_IN_15_DAYS: Final = 1
"""By people, of each VM."""
DRAIN_EVERY_DAYS: Final = 3.0
MAINTENANCE_HOURS: Final = 1.0
LOSS_EVERY_DAYS: Final = 7.5
LOST_HOURS: Final = 4.0
POWER_CUT_DAY: Final = 5.5
POWER_OFF_HOURS: Final = 1.0
MEMORY: Final = ("2Gi", "4Gi")
_TENTH: Final = 10


class What(StrEnum):
    """Kinds of events. The value is what a VM that is apart afterwards is apart by."""

    START = "start"
    STOP = "stop"
    GUEST_RESTART = "guest restart"
    QUICK_RESTART = "quick restart"
    MIGRATION = "migration by a person"
    DRAIN = "drain"
    UNCORDON = "end of a drain"
    NODE_LOSS = "node loss"
    NODE_BACK = "node back"
    POWER_CUT = "power cut"
    POWER_BACK = "power back"
    REUNITE = "reunite"


_OF_VM: Final = (What.START, What.STOP, What.GUEST_RESTART, What.QUICK_RESTART, What.MIGRATION)


class Event(NamedTuple):
    """At this hour something happens to a VM or a node; `keeps` is a quick restart that finds its share-manager."""

    at: float
    what: What
    target: str = ""
    keeps: bool = False

    @property
    def is_of_vm(self) -> bool:
        """Whether it happens to one VM."""
        return self.what in _OF_VM


class Machine(NamedTuple):
    """A VM of the month."""

    name: str
    claims: tuple[str, ...]
    opted_in: bool
    memory: str


class Plan(NamedTuple):
    """The VMs, the nodes, and the events in their order; the time ends at `hours`."""

    hours: float
    machines: list[Machine]
    nodes: list[str]
    events: list[Event]


def plan(seed: int, *, days: float, vms: int, nodes: int) -> Plan:
    """Draw a month. A tenth of the VMs has two claims, and another tenth is not opted in."""
    rng = random.Random(seed)  # noqa: S311 - a plan, and no secret
    hours, names = days * DAY_HOURS, [f"node-{number}" for number in range(nodes)]
    drawn = rng.sample(range(vms), 2 * (vms // _TENTH))
    two_claims, not_opted_in = set(drawn[: vms // _TENTH]), set(drawn[vms // _TENTH :])
    machines = [
        Machine(
            f"vm-{number:02}",
            tuple(f"{kind}-{number:02}" for kind in ("disk", "data")[: 1 + (number in two_claims)]),
            number not in not_opted_in,
            rng.choice(MEMORY),
        )
        for number in range(vms)
    ]
    events = [event for machine in machines for event in _of_machine(machine.name, hours, rng)]
    cut = round(min(POWER_CUT_DAY * DAY_HOURS, 0.8 * hours))
    events += _of_nodes(names, hours, rng)
    whole = [event._replace(at=math.ceil(event.at)) for event in events]
    powered = [event for event in whole if not cut <= event.at <= cut + POWER_OFF_HOURS]
    powered += [Event(cut, What.POWER_CUT), Event(cut + POWER_OFF_HOURS, What.POWER_BACK)]
    return Plan(hours, machines, names, sorted(event for event in powered if event.at < hours))


def together(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Events in their order: those of several VMs in one hour together, others alone."""
    group: list[Event] = []
    for event in events:
        is_beside = event.is_of_vm and event.target not in {each.target for each in group}
        if group and not (is_beside and group[0].is_of_vm and group[0].at == event.at):
            yield group
            group = []
        group.append(event)
    if group:
        yield group


def _of_machine(name: str, hours: float, rng: random.Random) -> Iterator[Event]:
    at = rng.expovariate(RESTARTS_A_DAY) * DAY_HOURS
    while at < hours:
        what = rng.choice((What.STOP, What.GUEST_RESTART, What.QUICK_RESTART))
        yield Event(at, what, name, keeps=rng.random() < 0.5)
        if what is What.STOP:
            at += rng.uniform(*OFF_HOURS)
            yield Event(at, What.START, name)
        at += rng.expovariate(RESTARTS_A_DAY) * DAY_HOURS
    if rng.random() < MIGRATIONS_IN_15_DAYS * hours / DAY_HOURS / 15:
        yield Event(rng.uniform(0, hours), What.MIGRATION, name)


def _of_nodes(names: list[str], hours: float, rng: random.Random) -> Iterator[Event]:
    for number, at in enumerate(_each(DRAIN_EVERY_DAYS, hours)):
        node = names[number % len(names)]
        yield Event(at, What.DRAIN, node)
        yield Event(at + MAINTENANCE_HOURS, What.UNCORDON, node)
    for at in _each(LOSS_EVERY_DAYS, hours):
        node = rng.choice(names)
        yield Event(at + 1, What.NODE_LOSS, node)
        yield Event(at + 1 + LOST_HOURS, What.NODE_BACK, node)


def rolling_drain(hour: float, nodes: Sequence[str]) -> Iterator[Event]:
    """From this hour on all nodes are drained, one after the other."""
    for number, node in enumerate(nodes, 1):
        yield Event(hour + number * 2 * MAINTENANCE_HOURS, What.DRAIN, node)
        yield Event(hour + (number * 2 + 1) * MAINTENANCE_HOURS, What.UNCORDON, node)


def _each(days: float, hours: float) -> Iterator[float]:
    """Times with this distance; in a time that is shorter than that, once in its middle."""
    distance = min(days * DAY_HOURS, hours)
    at = distance / 2
    while at < hours:
        yield at
        at += distance
