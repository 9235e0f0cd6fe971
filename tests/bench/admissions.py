"""`make bench BENCH=admissions`: what one core of `serve` answers, and how long an admission takes.

Prints a table; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import ssl
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import aiohttp  # noqa: E402 - a script finds its neighbours after it has said where they are
from load import Load, Slice  # noqa: E402
from sample import sample_review  # noqa: E402
from support.drivers import serving  # noqa: E402
from support.drivers.http_calls import request  # noqa: E402
from table import percentile, row  # noqa: E402


class Plan(NamedTuple):
    """How long to measure. `connections` keep the server's core busy; latency is measured on one."""

    rounds: int
    slice_seconds: float
    connections: int


FULL: Final = Plan(rounds=9, slice_seconds=2.0, connections=8)
QUICK: Final = Plan(rounds=1, slice_seconds=0.1, connections=2)


def measure(server: serving.Serving, trust: ssl.SSLContext, body: bytes, plan: Plan) -> tuple[list[Slice], list[Slice]]:
    """Return slices of time with all connections, and with one review at a time; they take turns."""
    full, single = (Load(server.process.pid, server.port, trust, [request(body)], n) for n in (plan.connections, 1))
    full.run(plan.slice_seconds)
    rounds = [(full.run(plan.slice_seconds), single.run(plan.slice_seconds / 2)) for _ in range(plan.rounds)]
    return [each for each, _ in rounds], [each for _, each in rounds]


def report(full: Sequence[Slice], single: Sequence[Slice]) -> None:
    """Print the table."""
    row("reviews/s on one core, median", statistics.median(each.per_second for each in full), digits=0)
    row("server core busy, least; below 0.95 the client was measured", min(each.busy for each in full), digits=2)
    row("server CPU per review, median, us", statistics.median(each.cpu_us for each in full))
    row("server CPU per review, least, us", min(each.cpu_us for each in full))
    for name, slices in (("in full load", full), ("one at a time", single)):
        for percent in (50, 99):
            row(f"latency {name}, p{percent}, us", percentile(list(_microseconds(slices)), percent), digits=0)


def _microseconds(slices: Sequence[Slice]) -> Iterator[float]:
    for each in slices:
        yield from (latency * 1e6 for latency in each.latencies)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    server_cpu, client_cpu, *_ = sorted(os.sched_getaffinity(0)) * 2
    body = sample_review()
    sys.stdout.write(
        f"{len(body)} bytes a review, Python {platform.python_version()}, aiohttp {aiohttp.__version__}, "
        f"{ssl.OPENSSL_VERSION}, {os.cpu_count()} cores, {plan.rounds} rounds of {plan.slice_seconds:g} s, "
        f"{plan.connections} connections\n\n"
    )
    os.sched_setaffinity(0, {client_cpu})
    with TemporaryDirectory() as name:
        directory = Path(name)
        pair = serving.issue(directory)
        manifests = serving.write_cluster(directory / "cluster.json", serving.cluster())
        flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
        with serving.serving(*flags, log=directory / "webhook.log", cpu=server_cpu) as server:
            report(*measure(server, pair.trust, body, plan))
            row("resident memory, MiB", serving.resident_mib(server.process.pid))


if __name__ == "__main__":
    main()
