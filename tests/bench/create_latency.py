"""`make bench BENCH=create_latency`: what the webhook adds to a pod's CREATE at a real kube-apiserver.

Nobody binds the pods: a scheduler that is away. Blocks of CREATEs take turns: without a webhook, with a webhook in Go
that answers with a constant patch, and with ours. Ours is stopped while the others have their turn, because it reads
every pod. The pods of a block are deleted outside of the time; those that wait stay. README.md beside this file has the
figures. Needs the programs of tests/controlplane/build.py.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from compared import CONSTANT, constant_webhook_in_go  # noqa: E402
from process import cpu_seconds  # noqa: E402
from support.control_plane.cluster_state import ClusterState  # noqa: E402
from support.control_plane.control_plane import ControlPlane  # noqa: E402
from support.control_plane.installed import Installed  # noqa: E402
from support.control_plane.kube_api import Api, Object  # noqa: E402
from support.control_plane.pod_owners import with_owners  # noqa: E402
from support.drivers.serving import Serving  # noqa: E402
from support.objects import builders  # noqa: E402 - a script finds its neighbours after it has said where they are
from table import percentile, row, title  # noqa: E402
from waiting import NODES, disk, nodes, pod_of  # noqa: E402

_OURS: Final = "virt-launcher"  # values of the label kubevirt.io, by which each webhook's pods are selected
_NOBODY: Final = "nobody"
_TITLES: Final = {_NOBODY: "without a webhook", CONSTANT: "with a constant in Go", _OURS: "with the webhook"}
_GOAL_RATIO: Final = 1.3
_QUIET_SECONDS: Final = 0.1
_QUIET_CPU_SECONDS: Final = 0.005


class Creator:
    """Creates pods, each for a VM of its own."""

    def __init__(self, api: Api, server: Serving) -> None:
        self._api, self._server = api, server
        self._pid = server.process.pid
        self.cpu_ms: list[float] = []

    def wait(self, vms: Sequence[int]) -> None:
        """Create the pods of these VMs, and leave them."""
        for vm in vms:
            assert _is_decided(self._api.create(pod_of(vm)))
        self.until_quiet()

    def block(self, label: str, vms: Sequence[int]) -> list[float]:
        """Milliseconds of each CREATE of a block, one after the other; the first is not counted."""
        pods = [with_owners(self._api, pod_of(vm, label)) for vm in vms]
        self.until_quiet()
        with self._alone() if label != _OURS else self._counted(len(vms)):
            made, took = [], []
            for pod in pods:
                began = perf_counter()
                made.append(self._api.create(pod, owned=False))
                took.append((perf_counter() - began) * 1e3)
        for stored in made:
            assert _is_decided(stored) == (label != _NOBODY), stored["metadata"]
            self._api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": stored["metadata"]})
        self.until_quiet()
        return took[1:]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Stop our server."""
        self._server.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._server.signal(signal.SIGCONT)

    @contextmanager
    def _counted(self, pods: int) -> Iterator[None]:
        """Note the CPU time of our server, up to the last event of the watches."""
        before = cpu_seconds(self._pid)
        yield
        self.until_quiet()
        self.cpu_ms.append((cpu_seconds(self._pid) - before) * 1e3 / pods)

    def until_quiet(self) -> None:
        """Wait until our server has nothing left to do."""
        used, before = 1.0, cpu_seconds(self._pid)
        while used > _QUIET_CPU_SECONDS:
            threading.Event().wait(_QUIET_SECONDS)
            used, before = cpu_seconds(self._pid) - before, cpu_seconds(self._pid)


def _is_decided(stored: Object) -> bool:
    return builders.DECISION in stored["metadata"]["annotations"]


def constant(stored: Object) -> list[Object]:
    """A patch that does to any such pod what ours did to this one."""
    annotations = stored["metadata"]["annotations"]
    return [
        {"op": "add", "path": "/spec/affinity", "value": stored["spec"]["affinity"]},
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
    ]


def measure(creator: Creator, vms: Sequence[int], rounds: int) -> dict[str, list[list[float]]]:
    """Milliseconds of each CREATE of each block, by circumstance. Each round begins with another one."""
    took: dict[str, list[list[float]]] = {label: [] for label in _TITLES}
    labels = list(_TITLES)
    for _ in range(rounds):
        for label in labels:
            took[label].append(creator.block(label, vms))
        labels.append(labels.pop(0))
    return took


def report(waiting: int, took: dict[str, list[list[float]]], cpu_ms: Sequence[float]) -> None:
    """Print the latencies, and how ours compares with the constant: of all CREATEs, and from round to round."""
    everything = {label: [each for block in blocks for each in block] for label, blocks in took.items()}
    title(f"CREATE of a pod, ms; {waiting} pods wait; {len(everything[_OURS]):,} each")
    for percent in (25, 50, 99):  # the first is what the others of a busy machine change least
        for label, what in _TITLES.items():
            row(f"p{percent} {what}", percentile(everything[label], percent), digits=2)
    rounds = sorted(median(ours) / median(go) for ours, go in zip(took[_OURS], took[CONSTANT], strict=True))
    row("least ratio of a round's p50, ours to Go", rounds[0], digits=2)
    row("largest ratio of a round's p50, ours to Go", rounds[-1], digits=2)
    ratio = percentile(everything[_OURS], 50) / percentile(everything[CONSTANT], 50)
    row("ratio of p50, ours to Go", ratio, _GOAL_RATIO, digits=2)
    row("CPU of ours for a pod, median of rounds, ms", median(cpu_ms), digits=2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    parser.add_argument("--on", type=int, default=NODES, help="number of nodes that have the VMs' share-managers")
    given = parser.parse_args()
    rounds, size = (2, 3) if given.quick else (12, 25)
    waiting = (0, 5) if given.quick else (0, 200, 500)
    with TemporaryDirectory() as name, ControlPlane(Path(name), scheduler=False) as plane:
        installed = Installed(plane, Path(name))
        with ClusterState(plane.api) as cluster, installed.serving() as server:
            vms = range(waiting[-1] + size + 1)
            cluster.become([*nodes(), *(each for vm in vms for each in disk(vm, given.on))])
            installed.enable()
            installed.until_called()
            creator = Creator(plane.api, server)
            creator.until_quiet()  # the caches are whole
            stored = plane.api.create(pod_of(0), dryRun="All")
            with constant_webhook_in_go(installed, Path(name) / "constant", constant(stored)):
                _run(creator, waiting, rounds, size)
        row("calls that failed open", plane.api.metric("apiserver_admission_webhook_fail_open_count"), 0, digits=0)


def _run(creator: Creator, waiting: Sequence[int], rounds: int, size: int) -> None:
    there = 0
    for number in waiting:
        creator.wait(range(there, number))
        there = number
        creator.cpu_ms.clear()
        report(number, measure(creator, range(number, number + size + 1), rounds), creator.cpu_ms)


if __name__ == "__main__":
    main()
