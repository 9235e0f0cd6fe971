"""The table of the month: each policy's share of local VM-hours, and the hours apart by cause."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final, NamedTuple

from simulation import month
from simulation.account import LOCAL
from simulation.engine import DAY, HOUR
from simulation.policies import POLICIES
from simulation.world import World

HALF_DAYS: Final = 15.0
_MIB_A_GIB: Final = 1024
_SHOWN: Final = ("live migration", "drain", "start", "node loss")
_TITLES: Final = ("live migration", "drain", "starts, restarts", "node loss", "other")


class Result(NamedTuple):
    """What one policy reached with one seed, or the mean of several seeds.

    Attributes:
        half: VM-hours of the first 15 days, by what they count as.
        whole: VM-hours of the whole month.
        migrations: how many migrations the policy itself made in the first 15 days.
        moved_gib: how much memory these migrations copied, in GiB.
        down_hours: VM-hours of the first 15 days in which a VM should have run and did not.
        waited_hours: how long pods waited because they fitted nowhere, in the whole month.
    """

    title: str
    half: Counter[str]
    whole: Counter[str]
    migrations: float
    moved_gib: float
    down_hours: float
    waited_hours: float

    @property
    def local_half(self) -> float:
        """The local share of the first 15 days, in %."""
        return share(self.half, LOCAL)

    @property
    def local_whole(self) -> float:
        """The local share of the month, in %."""
        return share(self.whole, LOCAL)


def share(hours: Counter[str], what: str) -> float:
    """Return the share of these VM-hours, in %."""
    return 100.0 * hours[what] / (sum(hours.values()) or 1.0)


def play(title: str, seed: int, two_disks: float = 0.0) -> Result:
    """Play one month. `two_disks` is the share of VMs that have a second disk."""
    world = World(POLICIES[title], seed, replace(month.MONTH, two_disks=two_disks))
    month.plan(world)
    world.run(HALF_DAYS * DAY)
    half, down, own = Counter(world.account.hours), world.account.down_hours, ("reunite", "plan")
    made = sum(world.migrations.made_by[by] for by in own)
    moved = sum(world.migrations.copied_mib[by] for by in own) / _MIB_A_GIB
    world.run(world.workload.days * DAY)
    waited = world.scheduler.waited_seconds / HOUR
    return Result(title, half, Counter(world.account.hours), made, moved, down, waited)


def mean(results: Sequence[Result]) -> Result:
    """Return the mean of several seeds of one policy."""
    many = len(results)
    half, whole = Counter[str](), Counter[str]()
    for each in results:
        half.update(each.half)
        whole.update(each.whole)
    return Result(
        results[0].title,
        Counter({key: hours / many for key, hours in half.items()}),
        Counter({key: hours / many for key, hours in whole.items()}),
        *(sum(numbers) / many for numbers in zip(*(each[3:] for each in results), strict=True)),
    )


def play_all(titles: Sequence[str], seeds: Sequence[int], two_disks: float = 0.0) -> list[Result]:
    """Play every policy with every seed, on all cores, and return the mean of each policy."""
    runs = list(product(titles, seeds))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        played = list(pool.map(partial(play, two_disks=two_disks), *zip(*runs, strict=True)))
    return [mean([each for each in played if each.title == title]) for title in titles]


def lines(results: Iterable[Result]) -> Iterable[str]:
    """Return the table in Markdown. The hours apart are those of the first 15 days, by cause."""
    own = ["own migrations", "GiB moved by them", "VM-hours not running", "pods waited, 30 days"]
    heads = ["local, 15 days", "30 days", *_TITLES, *own]
    yield f"| Rule | {' | '.join(heads)} |"
    yield f"|---|{'---:|' * len(heads)}"
    for each in results:
        apart = [f"{each.half[cause]:,.0f}" for cause in _SHOWN]
        other = sum(hours for cause, hours in each.half.items() if cause not in (*_SHOWN, LOCAL))
        cells = [f"{each.local_half:.1f} %", f"{each.local_whole:.1f} %", *apart, f"{other:,.0f}"]
        cells += [f"{number:,.0f}" for number in (each.migrations, each.moved_gib, each.down_hours)]
        yield f"| {each.title} | {' | '.join([*cells, f'{each.waited_hours:,.1f} h'])} |"
