"""`make bench BENCH=cold_starts`: how often a share-manager pod lands on its VM's node, by what is written into it.

The bench uses a real kube-apiserver and kube-scheduler, clusters of uneven load, and the same cold starts for each way.
The VMs' pods have a node, then the bench creates the share-manager pods. First the bench writes affinities of its own,
to see which of them decide and what outweighs them. Then the webhook writes them, also in a cluster of which nearly all
nodes are cordoned or full. README.md beside this file has the figures. Needs the programs of
tests/controlplane/build.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import steered  # noqa: E402
import uneven  # noqa: E402
from landing import Landed, Telling, land, write  # noqa: E402
from misses import misses, told  # noqa: E402
from support.control_plane.control_plane import ControlPlane  # noqa: E402
from support.control_plane.installed import Installed  # noqa: E402
from support.control_plane.kube_api import Object  # noqa: E402
from support.objects import builders  # noqa: E402 - a script finds its neighbours after it has said where they are
from uneven import ColdStart, UnevenNode, share_manager_pod  # noqa: E402
from wishes import longhorns_own, wishes  # noqa: E402

_SIZES: Final = (20, 1_000, 5_000)
_STARTS: Final = 200
_QUICK_SIZES: Final = (110,)
_QUICK_STARTS: Final = 12
_SEED: Final = 6
_OPEN_NODES: Final = 5  # where nearly all others take no pods
_TOLD_MOST: Final = 40  # misses of each way that are tried again

_WIDTH: Final = 56
_GOAL_PERCENT: Final = 99.0


class Circumstance(NamedTuple):
    """A cluster on a control plane, and the cold starts in it."""

    plane: ControlPlane
    nodes: Sequence[UnevenNode]
    starts: Sequence[ColdStart]

    def measure(
        self, what: str, affinities: Iterable[Object | None] | None = None, *, decided: bool = False, goal: bool = False
    ) -> list[tuple[ColdStart, Object]]:
        """One row. The cold starts that missed, with pods as they were admitted; `decided`: the webhook was asked."""
        each = zip(self.starts, affinities or [None] * len(self.starts), strict=True)
        landed = land(self.plane, [share_manager_pod(start, affinity) for start, affinity in each])
        for name, pod in landed.stored.items():
            assert (builders.DECISION in pod["metadata"].get("annotations", {})) == decided, name
        missed = [start for start in self.starts if landed.nodes.get(start.pod) != start.node.name]
        self._row(what, landed, len(missed), goal=goal)
        return [(start, share_manager_pod(start, landed.stored[start.pod]["spec"].get("affinity"))) for start in missed]

    def head(self) -> None:
        """What the columns are."""
        shunned = sum(start.node.is_shunned for start in self.starts)
        _say(
            f"\n{len(self.nodes):,} nodes, {len(self.starts)} cold starts, {shunned} of them on nodes that are shunned"
        )
        _say(f"{'':{_WIDTH}}{'on target, %':>13}{'Pending':>9}{'CPU ms':>8}")

    def _row(self, what: str, landed: Landed, missed: int, *, goal: bool) -> None:
        percent = 100 * (1 - missed / len(self.starts))
        worked = landed.cpu_seconds * 1e3 / len(self.starts)
        met = "met" if percent >= _GOAL_PERCENT and not landed.pending else "NOT MET"
        judged = f"  goal >= {_GOAL_PERCENT:g} %, 0 Pending: {met}" if goal else ""
        _say(f"{what:{_WIDTH}}{percent:13.1f}{len(landed.pending):9}{worked:8.2f}{judged}")


def measure(size: int, count: int) -> None:
    """All ways in one cluster."""
    random = Random(_SEED)  # noqa: S311 - no secret: the same cluster each time
    nodes = uneven.nodes(size, random)
    starts = uneven.cold_starts(nodes, count, random)
    with TemporaryDirectory() as name, ControlPlane(Path(name)) as plane:
        installed = Installed(plane, Path(name))
        write(plane.api, uneven.objects(nodes, starts))
        here = Circumstance(plane, nodes, starts)
        here.head()
        here.measure("nothing")
        missed = {
            what: here.measure(what, [wish.affinity(start, nodes, random) for start in starts])
            for what, wish in wishes(size).items()
        }
        with steered.webhook(installed):
            own = [longhorns_own(start, nodes, random) for start in starts]
            for what, given in (("the webhook", None), ("the webhook, beside Longhorn's NotIn", own)):
                missed[what] = here.measure(what, given, decided=True, goal=True)
        _with_nearly_all(here, installed)
        _tell(plane, missed)


def _with_nearly_all(here: Circumstance, installed: Installed) -> None:
    """The same where nearly all nodes take no more pods, the VMs' among them, and once without the VMs'."""
    homes = {start.node for start in here.starts}
    closed = here.nodes[:-_OPEN_NODES]
    away = [node for node in closed if node not in homes]
    ways = [("cordoned", steered.cordoned, closed), ("full", steered.full, closed)]
    if away:
        ways.append(("and the VMs' full", steered.full, away))
    for what, taken, nodes in ways:
        with taken(here.plane, nodes):
            but = f"all nodes but {_OPEN_NODES} {what}"
            here.measure(f"nothing, {but}")
            with steered.webhook(installed):
                here.measure(f"the webhook, {but}", decided=True)


def _tell(plane: ControlPlane, missed: Mapping[str, Sequence[tuple[ColdStart, Object]]]) -> None:
    """Why: the pods that missed once more, at a scheduler that tells its scores."""
    count_refusals = Telling(plane)
    for what, all_of_them in missed.items():
        again = all_of_them[:_TOLD_MOST]
        if again:
            landed, scores = count_refusals.land([pod for _, pod in again])
            for line in told(misses([start for start, _ in again], landed, scores)):
                _say(f"  {what}: of {len(again)} missed {line}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()  # a long run should say what it does


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    sizes, count = (_QUICK_SIZES, _QUICK_STARTS) if parser.parse_args().quick else (_SIZES, _STARTS)
    for size in sizes:
        measure(size, count)


if __name__ == "__main__":
    main()
