"""`make bench BENCH=admissions`: the webhook against an aiohttp handler that decodes nothing, on one core in one run.

Prints a table; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import ssl
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import aiohttp  # noqa: E402 - a script finds its neighbours after it has said where they are
from load import Load, Slice  # noqa: E402
from sample import sample_review  # noqa: E402
from stages import stages  # noqa: E402
from support.drivers import serving  # noqa: E402
from support.drivers.http_calls import request  # noqa: E402

from webhook.objects.manifests import Manifests  # noqa: E402

GOAL: Final = 0.75  # of the constant's reviews a second
_BUSY: Final = 0.95  # below this the client, not the server, was measured


class Plan(NamedTuple):
    """How long to measure. `connections` keep the server's core busy; latency is measured on one."""

    rounds: int
    slice_seconds: float
    connections: int
    stage_repeats: int
    imports: int


FULL: Final = Plan(rounds=9, slice_seconds=2.0, connections=8, stage_repeats=400, imports=11)
QUICK: Final = Plan(rounds=1, slice_seconds=0.1, connections=2, stage_repeats=2, imports=1)


class Contender(NamedTuple):
    """A server under load, and what its slices showed: in full, and with one review at a time."""

    name: str
    pid: int
    full: Load
    single: Load
    full_slices: list[Slice]
    single_slices: list[Slice]

    def rate(self) -> list[float]:
        """Reviews a second, of each full slice."""
        return [piece.per_second for piece in self.full_slices]

    def cpu(self) -> list[float]:
        """Microseconds of CPU per review, of each full slice."""
        return [piece.cpu_us for piece in self.full_slices]


@contextmanager
def contenders(directory: Path, request: bytes, plan: Plan, cpu: int) -> Iterator[list[Contender]]:
    """Both servers on one core, connected."""
    pair = serving.issue(directory)
    manifests = serving.write_cluster(directory / "cluster.json", serving.cluster())
    flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
    with serving.serving(*flags, log=directory / "webhook.log", cpu=cpu) as server:
        webhook = contender("webhook", server.process, server.port, pair.trust, requests=[request], plan=plan)
        size = str(len(webhook.full.answer.body))
        command = [sys.executable, str(HERE / "constant.py"), str(pair.cert_file), str(pair.key_file), size]
        log = directory / "constant.log"
        with serving.spawned(command, log, cpu=cpu) as process:
            port = serving.port_of(serving.until_logged(process, log, "serving")["listen"])
            yield [webhook, contender("constant", process, port, pair.trust, requests=[request], plan=plan)]


def contender(
    name: str,
    process: subprocess.Popen[bytes],
    port: int,
    trust: ssl.SSLContext,
    *,
    requests: Sequence[bytes],
    plan: Plan,
) -> Contender:
    """A server that runs, connected."""
    full = Load(process.pid, port, trust, requests, plan.connections)
    return Contender(name, process.pid, full, Load(process.pid, port, trust, requests, 1), [], [])


def measure(both: Sequence[Contender], plan: Plan) -> None:
    """A B A B ..., so that whatever else the machine does meets both alike."""
    for contender in both:
        contender.full.run(plan.slice_seconds)
    for _ in range(plan.rounds):
        for contender in both:
            contender.full_slices.append(contender.full.run(plan.slice_seconds))
        for contender in both:
            contender.single_slices.append(contender.single.run(plan.slice_seconds / 2))


def report(both: Sequence[Contender]) -> Iterator[str]:
    """The lines about the servers."""
    webhook, constant = both
    ratios = [ours / theirs for ours, theirs in zip(webhook.rate(), constant.rate(), strict=True)]
    yield f"{'':34}{'webhook':>12}{'constant':>12}"
    for name, pick in (("min", min), ("median", statistics.median), ("max", max)):
        yield _row(f"reviews/s on one core, {name}", *(pick(each.rate()) for each in both), digits=0)
    yield _row("server core busy, least", *(min(s.busy for s in each.full_slices) for each in both), digits=2)
    for name, pick in (("median", statistics.median), ("least", min)):
        yield _row(f"server CPU per review, {name}, us", *(pick(each.cpu()) for each in both))
    for quantile in (50, 99):
        in_full = (_percentile(each.full_slices, quantile) for each in both)
        yield _row(f"latency in full load, p{quantile}, us", *in_full, digits=0)
    for quantile in (50, 99):
        alone = (_percentile(each.single_slices, quantile) for each in both)
        yield _row(f"latency one at a time, p{quantile}, us", *alone, digits=0)
    yield _row("resident memory, MiB", *(serving.resident_mib(each.pid) for each in both))
    by_cpu = [theirs / ours for ours, theirs in zip(webhook.cpu(), constant.cpu(), strict=True)]
    for name, values in (("reviews/s", ratios), ("CPU per review", by_cpu)):
        middle = statistics.median(values)
        yield f"ratio of {name}: median {middle:.3f}, min {min(values):.3f}, max {max(values):.3f} (goal >= {GOAL})"
    idle = [each.name for each in both if min(piece.busy for piece in each.full_slices) < _BUSY]
    if idle:
        yield f"note: the core of {' and '.join(idle)} was not busy all the time; compare CPU per review instead"


def _row(name: str, ours: float, theirs: float, digits: int = 1) -> str:
    return f"{name:34}{ours:12.{digits}f}{theirs:12.{digits}f}"


def _percentile(slices: Sequence[Slice], percent: int) -> float:
    ordered = sorted(latency for piece in slices for latency in piece.latencies)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] * 1e6


def import_milliseconds(module: str, times: int) -> float:
    """How much longer a bare interpreter takes with this module, the median of a few starts of each."""
    with_it, without = [], []
    for _ in range(times):
        for took, code in ((with_it, f"import {module}"), (without, "pass")):
            began = perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, cwd=serving.ROOT)  # noqa: S603 - ourselves
            took.append(perf_counter() - began)
    return (statistics.median(with_it) - statistics.median(without)) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    server_cpu, client_cpu, *_ = sorted(os.sched_getaffinity(0)) * 2
    body = sample_review()
    say = sys.stdout.write
    say(
        f"{len(body)} bytes a review, Python {platform.python_version()}, aiohttp {aiohttp.__version__}, "
        f"{ssl.OPENSSL_VERSION}, {os.cpu_count()} cores, {plan.rounds} rounds of {plan.slice_seconds:g} s, "
        f"{plan.connections} connections\n\n"
    )
    os.sched_setaffinity(0, {client_cpu})
    with TemporaryDirectory() as name:
        directory = Path(name)
        with contenders(directory, request(body), plan, server_cpu) as both:
            measure(both, plan)
            say("\n".join(report(both)) + "\n\n")
        view = Manifests.load(directory / "cluster.json", longhorn_namespace="longhorn-system")
        for stage, microseconds in stages(body, view, plan.stage_repeats):
            say(f"{stage + ', us':34}{microseconds:12.1f}\n")
    for module in ("webhook.cli", "webhook.app.run"):
        say(f"{'import ' + module + ', ms':34}{import_milliseconds(module, plan.imports):12.1f}\n")


if __name__ == "__main__":
    main()
