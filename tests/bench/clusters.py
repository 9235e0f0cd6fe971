"""Scripted clusters to measure against, and the programs that are pointed at them: processes, on two cores."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from scale import Scale
from support.drivers import serving
from support.drivers.serving import ROOT, Client, Pair, Serving

from webhook.kube.kinds import resources

_LOOK_SECONDS: Final = 0.02
_SYNC_SECONDS: Final = 600  # the largest cluster takes a tenth of it
_HERE: Final = Path(__file__).resolve().parent


class Bench(NamedTuple):
    """Where files go, the certificate of every server, and the two cores: what is measured has the first for itself."""

    directory: Path
    pair: Pair
    core: int
    other_core: int

    @classmethod
    def at(cls, directory: Path) -> Bench:
        """The bench with its files in `directory`; this process goes to the other core."""
        core, other_core, *_ = sorted(os.sched_getaffinity(0)) * 2
        os.sched_setaffinity(0, {other_core})
        return cls(directory, serving.issue(directory), core, other_core)

    @property
    def environment(self) -> dict[str, str]:
        """Bytecode is kept, as the image has it: compiling at each start would show in the memory ever after."""
        return {
            "PYTHONPATH": os.pathsep.join(map(str, (_HERE, _HERE.parent, ROOT))),
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.directory / "bytecode"),
        }


class Cluster(NamedTuple):
    """A scripted API server that runs."""

    bench: Bench
    scale: Scale
    port: int
    kubeconfig: Path

    def ask(self, path: str) -> Any:
        """GET something of the bench's own."""
        with Client(self.port, self.bench.pair.trust) as client:
            return json.loads(client.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()).body)

    @contextmanager
    def serving(self) -> Iterator[Serving]:
        """The product, reading this cluster."""
        pair = self.bench.pair
        flags = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file)
        log = self.bench.directory / f"serve-{self.port}.log"
        with serving.serving(
            *flags, "--kubeconfig", self.kubeconfig, log=log, environment=self.bench.environment, cpu=self.bench.core
        ) as server:
            yield server


@contextmanager
def cluster(bench: Bench, scale: Scale) -> Iterator[Cluster]:
    """A scripted API server with so many objects."""
    log = bench.directory / f"api-{scale.objects}.log"
    command = [sys.executable, str(_HERE / "scripted.py"), str(bench.pair.cert_file), str(bench.pair.key_file)]
    command += map(str, scale)
    with serving.spawned(command, log, bench.environment, bench.other_core) as process:
        url = serving.until_logged(process, log, "serving")["listen"]
        kubeconfig = log.with_suffix(".kubeconfig")
        kubeconfig.write_text(json.dumps(_kubeconfig(url)))
        yield Cluster(bench, scale, serving.port_of(url), kubeconfig)


def until_synced(server: Serving, times: int = 1) -> float:
    """Wait until every cache has said so, so often; the seconds from the first log line to the last such one."""
    told: list[str] = []
    deadline = time.monotonic() + _SYNC_SECONDS
    with server.log.open() as log:
        rest, began = "", ""
        while len(told) < sum(each.watched for each in resources("longhorn-system")) * times:
            *lines, rest = (rest + log.read()).split("\n")
            began = began or (lines or [""])[0]
            told += [line for line in lines if '"message":"cache synced"' in line]
            assert server.process.poll() is None, server.log.read_text()
            assert time.monotonic() < deadline, f"after {_SYNC_SECONDS} s only {len(told)} caches are synced"
            time.sleep(_LOOK_SECONDS)
    first, last = (datetime.fromisoformat(json.loads(line)["time"]) for line in (began, told[-1]))
    return (last - first).total_seconds()


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    }
