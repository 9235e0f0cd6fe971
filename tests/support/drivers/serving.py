"""Throwaway certificates, a `serve` process, and a TLS client that sends exactly the given bytes.

The bench uses this too: nothing here needs pytest.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import trustme
from support.drivers.http_calls import Reply, parse_reply
from support.objects import short
from support.objects.builders import NAMESPACE, virt_launcher_pod
from support.objects.builders_kubevirt import vm_of
from support.waits import MAX_WAIT_SECONDS

ROOT: Final = Path(__file__).resolve().parents[3]
_START_POLL_SECONDS: Final = 0.02


class Pair(NamedTuple):
    """A certificate and its key in files, and the SSL context of a client that trusts the certificate."""

    cert_file: Path
    key_file: Path
    trust: ssl.SSLContext


def issue(directory: Path, *names: str, authority: trustme.CA | None = None, **validity: datetime) -> Pair:
    """A certificate in files of `directory`: by default for loopback, and of an authority of its own."""
    authority = authority or trustme.CA()
    issued = authority.issue_cert(*(names or ("localhost", "127.0.0.1")), **validity)
    pair = Pair(directory / "tls.crt", directory / "tls.key", ssl.create_default_context())
    pair.cert_file.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    pair.key_file.write_bytes(issued.private_key_pem.bytes())
    authority.configure_trust(pair.trust)
    return pair


def cluster() -> list[dict[str, Any]]:
    """Return three nodes, and one claim for each result of a claim; the share-manager of `disk` is on node-a.

    VM db01 is there, whose pod the reviews create.
    """
    served = {"disk": "node-a", "data": "node-b", "state": "node-a", "cordoned": "node-c"}
    volumes: dict[str, Mapping[str, Any]] = {name: {"servedFrom": node} for name, node in served.items()} | {
        "hinted": {"shareManager": {"state": "starting", "ownerID": "node-b"}, "pod": {"phase": "Pending"}},
        "stopped": {"shareManager": {"state": "stopped", "ownerID": "node-b"}},
        "block": {"volumeMode": "Block"},
        "single": {"access": "ReadWriteOnce"},
        "pending": {"bound": False},
    }
    named = {
        name: {**state, "persistentVolume": f"pv-{name}", "handle": f"pvc-{name}"} for name, state in volumes.items()
    }
    described = {"nodes": {"node-a": {}, "node-b": {}, "node-c": {"cordoned": True}}, "volumes": named}
    return [*short.cluster(described), *vm_of(virt_launcher_pod(), NAMESPACE)]


def write_cluster(file: Path, objects: Sequence[Mapping[str, Any]]) -> Path:
    """The objects as a List in a file that `--manifests` takes."""
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return file


class Client:
    """One blocking connection; with TLS if `trust` is given."""

    def __init__(self, port: int, trust: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=MAX_WAIT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go's client; else Nagle waits for 40 ms
        self.socket = trust.wrap_socket(plain, server_hostname="localhost") if trust else plain
        self._got = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send these bytes."""
        self.socket.sendall(data)

    def reply(self) -> Reply:
        """Wait for the next answer, and return it.

        Raises:
            EOFError: the server closed the connection before the answer was complete.
        """
        while (parsed := parse_reply(self._got)) is None:
            try:
                more = self.socket.recv(65536)
            except OSError as error:
                raise EOFError(bytes(self._got)) from error
            if not more:
                raise EOFError(bytes(self._got))
            self._got += more
        reply, length = parsed
        del self._got[:length]
        return reply

    def ask(self, data: bytes) -> Reply:
        """Send these bytes, and wait for the answer."""
        self.send(data)
        return self.reply()


class Serving(NamedTuple):
    """A `serve` process that has logged its addresses."""

    process: subprocess.Popen[bytes]
    port: int
    health_port: int
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """The lines that the process has logged until now."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def until_logged(self, message: str) -> dict[str, Any]:
        """Wait for a log line with this message; fails if the process ends without the line."""
        return until_logged(self.process, self.log, message)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)


@contextmanager
def serving(
    *words: str | Path,
    log: Path,
    environment: Mapping[str, str] | None = None,
    cpu: int | None = None,
    seconds: float = MAX_WAIT_SECONDS,
) -> Iterator[Serving]:
    """A real `python -m webhook serve` with these flags, on free ports of loopback, killed at the end.

    The process has `seconds` to start: it needs minutes to read the manifests of thousands of VMs.
    """
    ports = ("--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0")
    with spawned(
        [sys.executable, "-m", "webhook", "serve", *map(str, words), *ports], log, environment, cpu
    ) as process:
        line = until_logged(process, log, "serving", seconds)
        yield Serving(process, port_of(line["listen"]), port_of(line["health_listen"]), log)


@contextmanager
def spawned(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, cpu: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the block ends, on the processor `cpu` if it is given. `log` gets its standard error."""
    with log.open("wb") as stderr, _pinned(cpu):  # a child inherits it, and so has it before its first instruction
        variables = {**os.environ, **(environment or {})}
        process = subprocess.Popen(command, cwd=ROOT, stderr=stderr, env=variables)  # noqa: S603 - our own programs
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def _pinned(cpu: int | None) -> Iterator[None]:
    if cpu is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def until_logged(
    process: subprocess.Popen[bytes], log: Path, message: str, seconds: float = MAX_WAIT_SECONDS
) -> dict[str, Any]:
    """Wait for a log line with this message; fails if the process ends without the line, or logs it too late."""
    deadline = time.monotonic() + seconds
    while True:
        over = process.poll() is not None or time.monotonic() > deadline
        for line in log.read_text().splitlines(keepends=True):
            if f'"message":"{message}"' in line and line.endswith("\n"):
                found: dict[str, Any] = json.loads(line)
                return found
        assert not over, f"no {message!r} in the log:\n{log.read_text()}"
        with suppress(subprocess.TimeoutExpired):
            process.wait(_START_POLL_SECONDS)


def port_of(url: str) -> int:
    """The port of an address as the log names it."""
    return int(url.rpartition(":")[2])


def resident_mib(pid: int) -> float:
    """The memory that a process holds; Linux only."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2
