"""Objects that anybody with the rights of one namespace can write, at a real `serve`: what its memory keeps of them."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import pytest
from support.drivers.flooding import Late
from support.drivers.serving import Client, Serving, issue, serving
from support.fakes.api_server import ApiServer
from support.fakes.live import PATHS, cluster_of, write_kubeconfig
from support.models.model_api import Collection
from support.objects import builders
from support.objects.builders_kubevirt import virtual_machine
from support.repeated_step import RepeatedStep
from support.scenarios.admitting import until

from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.core.view import Kind
from webhook.kube.wire import _LINE_MAX_BYTES

pytestmark = pytest.mark.slow

_PROBE: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Flood(NamedTuple):
    """Writes of one kind: the object, how often it is written, and under how many names."""

    kind: Kind
    written: dict[str, Any]
    times: int
    names: int

    def lines(self, revision: int) -> Iterator[bytes]:
        """Return the events of these writes, which follow `revision`."""
        self.written["metadata"] |= {"name": "NAME", "namespace": builders.NAMESPACE, "resourceVersion": "VERSION"}
        template = json.dumps({"type": "MODIFIED", "object": self.written}, separators=(",", ":"))
        for each in range(self.times):
            line = template.replace("NAME", f"stranger-{each % self.names:02}", 1).replace("TEXT", f"{each:04}")
            yield line.replace("VERSION", str(revision + each + 1), 1).encode() + b"\n"


def annotated() -> dict[str, Any]:
    """A halted VM with an annotation of 250 KB."""
    vm = virtual_machine()
    vm["metadata"]["annotations"] = {ANNOTATION_CO_SCHEDULE: "TEXT" + "x" * 250_000}
    return vm


def preferring(names: int) -> dict[str, Any]:
    """A pod that nobody schedules, with so many preferred nodes."""
    affinity = builders.node_affinity(preferred={f"node-{each:05}": 1 for each in range(names)})
    return builders.vm_pod("x", affinity=affinity, containers=[{"name": "main", "image": "x"}])


def repelling() -> dict[str, Any]:
    """A pod on a node, whose anti-affinity has 100,000 values."""
    values = {"key": "app", "operator": "In", "values": [f"TEXT-{each}" for each in range(100_000)]}
    term = {"labelSelector": {"matchExpressions": [values]}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {_REQUIRED: [term]}}
    return builders.vm_pod("x", node="node-a", affinity=affinity, containers=[{"name": "main", "image": "x"}])


FLOODS: Final = {
    "one VM's annotation, 600 times 250 KB": Flood(Kind.VIRTUAL_MACHINE, annotated(), 600, 1),
    "a pod that prefers 30,000 nodes, updated 20 times": Flood(Kind.VIRT_LAUNCHER_POD, preferring(30_000), 20, 1),
    "20 pods that repel 100,000 values": Flood(Kind.VIRT_LAUNCHER_POD, repelling(), 20, 20),
}


class Probe(RepeatedStep):
    """Asks for /healthz all the time, and keeps how long each answer took, in seconds."""

    def __init__(self, client: Client) -> None:
        super().__init__(0.001)
        self.waits: list[float] = []
        self._client = client

    def step(self) -> None:
        """Ask once."""
        asked = perf_counter()
        assert self._client.ask(_PROBE).status == 200
        self.waits.append(perf_counter() - asked)


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_a_strangers_objects_leave_no_more_than_a_line(
    flood: Flood, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The memory grows by the longest line of a watch at most, which the process takes in before it decodes it.

    A kubelet has no reason to act meanwhile.
    """
    cluster = cluster_of(builders.node("node-a"), kubevirt=True)
    pair, collection = issue(tmp_path), cluster.collections[PATHS[flood.kind]]
    async with ApiServer(cluster) as api:
        words = ("--tls-cert-file", pair.cert_file, "--tls-private-key-file", pair.key_file)
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", api.url)
        loop = asyncio.get_running_loop()

        def replay() -> tuple[float, list[float]]:
            with (
                serving(*words, "--kubeconfig", kubeconfig, log=tmp_path / "log") as server,
                Client(server.health_port) as client,
            ):
                until(
                    # The watch that lists ends, and another one follows.
                    lambda: len(collection.watches) == 1 and _objects(client, flood.kind, "last event") == 0,
                    lambda: f"a watch {collection.watches} {_shown(client)}",
                )
                before = _resident(server)
                with Client(server.health_port) as other, Probe(other) as probe:
                    listed = collection.revision
                    collection.revision += flood.times  # before the lines: a watch that starts again knows these
                    for line in flood.lines(listed):
                        asyncio.run_coroutine_threadsafe(_say(collection, line), loop).result()
                    loop.call_soon_threadsafe(collection.put, _last(flood))
                    until(
                        lambda: _objects(client, flood.kind) == flood.names + 1,
                        lambda: f"the last object {_shown(client)}",
                    )
                return (_resident(server) - before) / 2**20, probe.waits

        grown, waits = await asyncio.to_thread(replay)
    name = request.node.callspec.id
    sys.stdout.write(f"{name}: {grown:.1f} MiB more, longest answer of /healthz {max(waits) * 1e3:.0f} ms\n")
    assert grown <= _LINE_MAX_BYTES / 2**20
    late = Late()
    for seconds in waits:
        late.note(seconds)


def _last(flood: Flood) -> dict[str, Any]:
    last = virtual_machine("last") if flood.kind is Kind.VIRTUAL_MACHINE else builders.vm_pod("last")
    last["metadata"] |= {"namespace": builders.NAMESPACE, "name": "last"}
    return last


async def _say(collection: Collection, line: bytes) -> None:
    for watch in collection.watches:
        watch.say(line)
        while watch._unsaid:  # noqa: ASYNC110 - a watch tells nobody. Without it each line copies those before
            await asyncio.sleep(0)


def _objects(client: Client, kind: Kind, what: str = "") -> int | None:
    """Return how many objects of a kind the process has; None before it has a list, or while it does not say `what`."""
    title = "pods" if kind is Kind.VIRT_LAUNCHER_POD else "virtualmachines.kubevirt.io"
    found = re.search(rf"^\[.\]{title} ok: (\d+) objects.*{what}", _shown(client), re.MULTILINE)
    return int(found[1]) if found else None


def _shown(client: Client) -> str:
    return client.ask(b"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n").body.decode()


def _resident(server: Serving) -> int:
    """Return the bytes of memory that the process has."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
