"""`make bench BENCH=admissions`: how long an admission takes in `serve`, one after the other on one connection.

Prints a table; README.md beside this file has the figures and how to read them. Needs Linux and two cores.
"""

from __future__ import annotations

import argparse
import os
import platform
import ssl
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import aiohttp  # noqa: E402 - a script finds its neighbours after it has said where they are
from process import cpu_seconds, resident  # noqa: E402
from sample import sample_review  # noqa: E402
from support.drivers import serving  # noqa: E402
from support.drivers.http_calls import request  # noqa: E402
from table import percentile, row  # noqa: E402

_ROUNDS: Final = 9
_ROUND_SECONDS, _QUICK_SECONDS = 2.0, 0.1


def latencies_us(client: serving.Client, review: bytes, seconds: float) -> list[float]:
    """Ask for so long. Return the microseconds of each answer."""
    found, until = [], perf_counter() + seconds
    while (began := perf_counter()) < until:
        assert client.ask(review).status == 200
        found.append((perf_counter() - began) * 1e6)
    return found


def measure(server: serving.Serving, trust: ssl.SSLContext, body: bytes, seconds: float) -> None:
    """Ask in rounds of so many seconds, and print the table."""
    pid, review = server.process.pid, request(body)
    everything, cpu_us = [], []
    with serving.Client(server.port, trust) as client:
        latencies_us(client, review, seconds)
        for _ in range(_ROUNDS):
            before = cpu_seconds(pid)
            found = latencies_us(client, review, seconds)
            cpu_us.append((cpu_seconds(pid) - before) * 1e6 / len(found))
            everything += found
    row("server CPU per review, median, us", statistics.median(cpu_us))
    row("server CPU per review, least, us", min(cpu_us))
    for percent in (50, 99):
        row(f"latency, p{percent}, us", percentile(everything, percent), digits=0)
    row("resident memory, MiB", resident(pid)[0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    seconds = _QUICK_SECONDS if parser.parse_args().quick else _ROUND_SECONDS
    server_cpu, client_cpu, *_ = sorted(os.sched_getaffinity(0)) * 2
    body = sample_review()
    sys.stdout.write(
        f"{len(body)} bytes a review, Python {platform.python_version()}, aiohttp {aiohttp.__version__}, "
        f"{ssl.OPENSSL_VERSION}, {os.cpu_count()} cores, {_ROUNDS} rounds of {seconds:g} s\n\n"
    )
    os.sched_setaffinity(0, {client_cpu})
    with TemporaryDirectory() as name:
        directory = Path(name)
        pair = serving.issue(directory)
        manifests = serving.write_cluster(directory / "cluster.json", serving.cluster())
        flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file, "--manifests", manifests)
        with serving.serving(*flags, log=directory / "webhook.log", cpu=server_cpu) as server:
            measure(server, pair.trust, body, seconds)


if __name__ == "__main__":
    main()
