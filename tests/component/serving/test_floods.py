"""Thousands of callers that connect and send nothing to a real `serve`: it answers all others meanwhile."""

from __future__ import annotations

import json
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.drivers.flooding import HALF, PROBE, PROBE_EVERY, Late, files, open_connections, silent
from support.drivers.http_calls import request
from support.drivers.serving import Client, Serving, cluster, issue, serving, write_cluster
from support.objects import builders
from support.scenarios.admitting import until

from webhook.component_base.server.connection import DEFAULT_LIMITS

pytestmark = pytest.mark.slow

FLOOD: Final = 1_100  # connections: more than a listener holds
_PROBES_AFTER: Final = 20
_FILES: Final = 1_024  # with which containers often begin: no more than a listener's connections
BODY: Final = json.dumps(builders.review(builders.virt_launcher_pod(claims=["disk"]))).encode()
HEALTH: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Server(NamedTuple):
    """A `serve` process, and the trust in it."""

    process: Serving
    trust: ssl.SSLContext

    def port(self, listener: str) -> int:
        """Return the port of one of its two listeners."""
        return self.process.port if listener == "webhook" else self.process.health_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a replica with the limits of a pod, and let this process open enough files for the flood."""
    directory = tmp_path_factory.mktemp("flooded")
    pair = issue(directory)
    manifests = write_cluster(directory / "cluster.json", cluster())
    flags = {"tls-cert-file": pair.cert_file, "tls-private-key-file": pair.key_file, "manifests": manifests}
    with ExitStack() as stack:
        stack.enter_context(files(_FILES))
        words = [f"--{name}={value}" for name, value in flags.items()]
        process = stack.enter_context(serving(*words, log=directory / "log"))
        stack.enter_context(files(4 * FLOOD))
        yield Server(process, pair.trust)


Flooding = Callable[[Server, int, int], socket.socket]
"""(number, port) -> a connection."""


def _silent(_: Server, port: int, number: int) -> socket.socket:  # noqa: ARG001 - Flooding
    return silent(port)


def _from_everywhere(_: Server, port: int, number: int) -> socket.socket:
    return silent(port, 1 + number)


def _secured(server: Server, port: int, number: int) -> socket.socket:  # noqa: ARG001 - Flooding
    return Client(port, server.trust).socket


def _asked(server: Server, port: int, number: int) -> socket.socket:  # noqa: ARG001 - Flooding
    client = Client(port)
    assert client.ask(HEALTH).status == 200
    return client.socket


FLOODS: Final[dict[str, tuple[str, Flooding, bool]]] = {
    "silent after the handshake": ("webhook", _secured, False),
    "silent, from many addresses, at the health port": ("health", _from_everywhere, False),
    "silent, from many addresses, at the webhook": ("webhook", _from_everywhere, False),
    "kept after an answer, at the health port": ("health", _asked, False),
    "a byte at a time, at the health port": ("health", _silent, True),
    "a byte at a time, at the webhook": ("webhook", _secured, True),
}


@pytest.mark.parametrize(("listener", "connect", "dribbles"), FLOODS.values(), ids=FLOODS)
def test_a_flood_of_connections_keeps_nobody_from_an_answer(
    server: Server,
    listener: str,
    connect: Flooding,
    dribbles: bool,  # noqa: FBT001 - a row
) -> None:
    """Each probe and each new caller has an answer within 1 s. An API server's connections in use stay open."""
    late = Late()
    with ExitStack() as stack:
        kept = [stack.enter_context(Client(server.process.port, server.trust)) for _ in range(3)]
        flood: list[socket.socket] = []
        for number in range(FLOOD):
            flood.append(stack.enter_context(connect(server, server.port(listener), number)))
            if dribbles:
                _dribble(flood[-1:], HALF[:1])
            if number % PROBE_EVERY == 0:
                late.note(_answered(server, kept))
        for number in range(_PROBES_AFTER):
            if dribbles:
                _dribble(flood, HALF[1 + number : 2 + number])
            late.note(_answered(server, kept))


def _dribble(flood: Sequence[socket.socket], data: bytes) -> None:
    for each in flood:
        with suppress(OSError):  # it was cut
            each.send(data)


def _answered(server: Server, kept: Sequence[Client]) -> float:
    """A probe, a new caller and all of `kept` were answered: the seconds that the slower of the first two took."""
    began = time.monotonic()
    with Client(server.process.health_port) as kubelet:
        assert kubelet.ask(PROBE).status == 200
    probed = time.monotonic()
    with Client(server.process.port, server.trust) as new:
        assert new.ask(request(BODY)).response["allowed"] is True
    called = time.monotonic()
    for each in kept:
        assert each.ask(request(BODY)).response["allowed"] is True
    return max(probed - began, called - probed)


@pytest.fixture
def short_of_files(server: Server) -> Iterator[Callable[[int], None]]:
    """Leave the replica so many files to open until the end of the test."""
    pid = server.process.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    def leave(more: int) -> None:
        opened = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
        free = next(number for number in count() if number not in opened)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free + more, before[1]))

    yield leave
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("listener", ["health", "webhook"])
def test_a_process_without_a_file_to_spare_answers(
    server: Server, short_of_files: Callable[[int], None], listener: str
) -> None:
    """A silent connection is closed for each new caller."""
    with ExitStack() as stack:
        kept = stack.enter_context(Client(server.process.port, server.trust))
        assert kept.ask(request(BODY)).response["allowed"] is True
        short_of_files(24)
        for number in range(48):
            stack.enter_context(_silent(server, server.port(listener), number))
        began = time.monotonic()
        with Client(server.port(listener), server.trust if listener == "webhook" else None) as new:
            assert new.ask(request(BODY) if listener == "webhook" else PROBE).status == 200
        assert kept.ask(request(BODY)).response["allowed"] is True
        assert time.monotonic() - began < DEFAULT_LIMITS.handshake_seconds  # nobody waits for the end of a silent one


def test_without_a_connection_to_close_new_ones_are_accepted_later(
    server: Server, short_of_files: Callable[[int], None]
) -> None:
    """As soon as the process may open files again; until then the log has the reason."""
    with Client(server.process.health_port) as first:  # the loop has all the files that it takes
        assert first.ask(PROBE).status == 200
    until(
        lambda: not open_connections(server.process.port, server.process.health_port),
        "connections of the past to be closed: they would give way",
    )
    short_of_files(0)
    with ExitStack() as stack:
        waiting = [stack.enter_context(Client(server.process.health_port)) for _ in range(3)]
        for each in waiting:
            each.send(HEALTH)
        server.process.until_logged("can't accept connections")
        short_of_files(24)
        assert [each.reply().status for each in waiting] == [200, 200, 200]
