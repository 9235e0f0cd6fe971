"""`make bench BENCH=create_latency`: what the webhook adds to a pod's CREATE at a real kube-apiserver.

Blocks of CREATEs take turns: without a webhook, with it, and with it for pods that its selector leaves out. Each pod is
stored, and deleted outside of the time. README.md beside this file has the figures. Needs the programs of
tests/controlplane/build.py.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from clusters import until_synced  # noqa: E402
from sample import SAMPLE_CLAIMS, sample_pod  # noqa: E402
from support.control_plane.cluster_state import ClusterState  # noqa: E402
from support.control_plane.control_plane import ControlPlane  # noqa: E402
from support.control_plane.installed import Installed  # noqa: E402
from support.control_plane.kube_api import Api, Object  # noqa: E402
from support.drivers import serving  # noqa: E402
from support.objects import builders  # noqa: E402 - a script finds its neighbours after it has said where they are
from table import percentile, row, title  # noqa: E402

_WITHOUT: Final = "without a webhook"
_WITH: Final = "with the webhook"
_BESIDE: Final = "with it, of a pod that it is not asked about"
_METRIC: Final = "apiserver_admission_webhook_admission_duration_seconds"
_OFF_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05


def measure(installed: Installed, blocks: int, size: int) -> dict[str, list[float]]:
    """Milliseconds of each CREATE, by circumstance."""
    api = installed.plane.api
    launcher = {**sample_pod(SAMPLE_CLAIMS), "apiVersion": "v1", "kind": "Pod"}
    launcher["metadata"]["namespace"] = builders.NAMESPACE
    metadata = launcher["metadata"]
    other = {**launcher, "metadata": {**metadata, "labels": {**metadata["labels"], "kubevirt.io": "something-else"}}}
    took: dict[str, list[float]] = {_WITHOUT: [], _WITH: [], _BESIDE: []}
    for _ in range(blocks):
        installed.disable()
        _until_not_called(api)
        took[_WITHOUT] += _block(api, launcher, size, decided=False)
        installed.enable()
        installed.until_called()
        took[_WITH] += _block(api, launcher, size, decided=True)
        took[_BESIDE] += _block(api, other, size, decided=False)
    installed.disable()
    return took


def _block(api: Api, pod: Object, size: int, *, decided: bool) -> Iterator[float]:
    """So many CREATEs, one after the other; the first is not counted."""
    made = []
    for number in range(size + 1):
        began = perf_counter()
        made.append(api.create(pod))
        if number:
            yield (perf_counter() - began) * 1e3
    for stored in made:
        assert (builders.DECISION in stored["metadata"]["annotations"]) == decided, stored["metadata"]
        api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": stored["metadata"]})


def _until_not_called(api: Api) -> None:
    probe = builders.virt_launcher_pod(namespace=builders.NAMESPACE)
    deadline = time.monotonic() + _OFF_SECONDS
    while builders.DECISION in api.create(probe, dryRun="All")["metadata"]["annotations"]:
        assert time.monotonic() < deadline, "the API server still calls the webhook"
        threading.Event().wait(_POLL_SECONDS)


def report(took: dict[str, list[float]]) -> None:
    """Print the latencies with and without the webhook, and their difference."""
    title(f"CREATE of a pod at kube-apiserver, {len(took[_WITH]):,} each, in milliseconds")
    for percent in (25, 50, 99):  # the first is what the others of a busy machine change least
        for what, times in took.items():
            row(f"p{percent} {what}", percentile(times, percent), digits=2)
        row(f"p{percent} added", percentile(took[_WITH], percent) - percentile(took[_WITHOUT], percent), digits=2)
    for what, times in took.items():
        row(f"mean {what}", mean(times), digits=2)
    row("mean added", mean(took[_WITH]) - mean(took[_WITHOUT]), digits=2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    blocks, size = (1, 3) if parser.parse_args().quick else (20, 50)
    with TemporaryDirectory() as name, ControlPlane(Path(name), scheduler=False) as plane:
        installed = Installed(plane, Path(name))
        with ClusterState(plane.api) as cluster, installed.serving() as server:
            cluster.become(serving.cluster())
            until_synced(server)
            report(measure(installed, blocks, size))
        calls = plane.api.metric(f"{_METRIC}_count", name="virt-launcher.kubevirt-coschedule.io")
        seconds = plane.api.metric(f"{_METRIC}_sum", name="virt-launcher.kubevirt-coschedule.io")
        row("mean of a call of the webhook, by kube-apiserver's own metric", seconds / calls * 1e3, digits=2)
        row("calls that failed open", plane.api.metric("apiserver_admission_webhook_fail_open_count"), 0, digits=0)


if __name__ == "__main__":
    main()
