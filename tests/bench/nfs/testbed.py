"""NFS-Ganesha and its clients in two network namespaces, and relays that add a delay between them.

Only root can make a namespace. The exported file is in memory (/dev/shm), so no disk is part of what is measured.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
_FILE_BYTES: Final = 64 << 20
_SERVER, _CLIENT = "10.99.0.1", "10.99.0.2"  # inside the namespaces only
_NFS_PORT: Final = 2049
_PATIENCE_SECONDS: Final = 30
_NEEDED: Final = {
    "ganesha.nfsd": "nfs-ganesha nfs-ganesha-vfs",
    "gcc": "gcc libc6-dev",
    "ip": "iproute2",
    "chrt": "util-linux",
    "taskset": "util-linux",
}
_NS_A_MICROSECOND: Final = 1000
# Each process has one processor, so that the kernel moves none: the server the first, client and relay the last.
_SERVER_CPU, _CLIENT_CPU = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))

# As Longhorn's share-manager: NFSv4 alone, over TCP, no squash. Nobody has a lock to reclaim: no grace period.
_CONFIGURATION: Final = """
NFS_CORE_PARAM {{ NFS_Port = {port}; Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }}
NFSV4 {{ Graceless = true; Minor_Versions = 1, 2; Only_Numeric_Owners = true; RecoveryRoot = {directory}; }}
EXPORT {{
  Export_Id = 1; Path = {export}; Pseudo = /volume; Filesystem_id = 1.1;
  Protocols = 4; Transports = TCP; Access_Type = RW; SecType = sys; Squash = None; FSAL {{ Name = VFS; }}
}}
"""


class Unfit(Exception):
    """This machine can't run the bench; the message says why, and what to do."""


class Way(NamedTuple):
    """How requests reach the server; `added` is the round trip in microseconds that a relay adds, None on its node."""

    title: str
    added: int | None = None


class Client:
    """A client process (client.py) that measures one slice at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until the process is ready."""
        self._process = process
        _line(process)

    def p50(self, operation: str, depth: int, seconds: float) -> float:
        """Measure one slice: the p50 in microseconds.

        Raises:
            Unfit: the client has ended.
        """
        if self._process.stdin is None or self._process.poll() is not None:
            raise Unfit("a client has ended; its error is above")
        print(operation, depth, seconds, file=self._process.stdin, flush=True)
        return float(_line(self._process).split()[0])

    def stop(self) -> None:
        """Close the connection."""
        _stop(self._process)


class Testbed(NamedTuple):
    """One client for each way, and the server's version."""

    clients: dict[Way, Client]
    relays: dict[Way, subprocess.Popen[str]]
    server: str

    def late_us(self) -> float:
        """End the clients, and ask the relays how late they passed bytes on, on average: the worst of them."""
        for client in self.clients.values():
            client.stop()
        return max(int(_line(relay)) for relay in self.relays.values()) / _NS_A_MICROSECOND


def unfit() -> str | None:
    """Why this machine can't run the bench, and what to do; None if it can."""
    if os.geteuid() != 0:
        return "this bench makes network namespaces, which only root may do: run it with sudo"
    missing = dict.fromkeys(package for program, package in _NEEDED.items() if shutil.which(program) is None)
    return f"a program is missing: apt-get install --no-install-recommends {' '.join(missing)}" if missing else None


@contextmanager
def testbed(ways: Sequence[Way]) -> Iterator[Testbed]:
    """Start the server, a relay for each way that has one, and the clients.

    Raises:
        Unfit: a program is missing, the user is not root, or a part does not start.
    """
    if reason := unfit():
        raise Unfit(reason)
    with ExitStack() as stack:
        _keep_awake(stack)
        directory = Path(stack.enter_context(TemporaryDirectory()))
        export = Path(stack.enter_context(TemporaryDirectory(dir="/dev/shm")))
        (export / "disk.img").write_bytes(os.urandom(_FILE_BYTES))
        server, client = _namespaces(stack)
        _build(directory)
        _serve(stack, server, directory, export)
        relays, clients = {}, {}
        for number, way in enumerate(ways, start=1):
            address, port, namespace = "127.0.0.1", _NFS_PORT, server
            if way.added is not None:
                address, port, namespace = _SERVER, _NFS_PORT + number, client
                relays[way] = _relay(stack, server, directory, port, way.added)
            arguments = [address, port, "volume", "disk.img", _FILE_BYTES]
            program = [sys.executable, HERE / "client.py", directory / "exchange.so", *arguments]
            clients[way] = Client(_started(stack, namespace, _CLIENT_CPU, program))
        yield Testbed(clients, relays, _run(["ganesha.nfsd", "-v"]).strip())


def _run(command: Sequence[object]) -> str:
    ended = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)  # noqa: S603 - constant programs
    if ended.returncode:
        raise Unfit(f"{' '.join(map(str, command))}: {ended.stderr.strip()}")
    return ended.stdout


def _namespaces(stack: ExitStack) -> tuple[str, str]:
    """Two namespaces that a veth pair connects."""
    names = tuple(f"gain-{side}-{os.getpid()}" for side in ("server", "client"))
    for name in names:
        _run(["ip", "netns", "add", name])
        stack.callback(_run, ["ip", "netns", "delete", name])
        _run(["ip", "-netns", name, "link", "set", "lo", "up"])
    server, client = names
    _run(["ip", "link", "add", "veth0", "netns", server, "type", "veth", "peer", "name", "veth0", "netns", client])
    for name, address in ((server, _SERVER), (client, _CLIENT)):
        _run(["ip", "-netns", name, "address", "add", f"{address}/24", "dev", "veth0"])
        _run(["ip", "-netns", name, "link", "set", "veth0", "up"])
    return server, client


def _build(directory: Path) -> None:
    for source, target, options in (("exchange.c", "exchange.so", ["-shared", "-fPIC"]), ("relay.c", "relay", [])):
        _run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", *options, "-o", directory / target, HERE / source])


def _keep_awake(stack: ExitStack) -> None:
    """A process for each processor that computes when nothing else does.

    A virtual processor with nothing to do stops, and the hypervisor starts it again for the next request. That takes
    a time of its own, which differs from minute to minute, and which a node with other work does not need.
    """
    for processor in sorted(os.sched_getaffinity(0)):
        command = ["taskset", "-c", str(processor), "chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - constant program
        stack.callback(process.wait)
        stack.callback(process.kill)


def _started(stack: ExitStack, namespace: str, processor: int, command: Sequence[object]) -> subprocess.Popen[str]:
    """A process in a namespace, before all ordinary processes of the machine: others should not be measured."""
    scheduled = ["taskset", "-c", str(processor), "chrt", "--fifo", "10"]
    process = subprocess.Popen(  # noqa: S603 - constant programs
        ["ip", "netns", "exec", namespace, *scheduled, *map(str, command)],  # noqa: S607 - found where root finds it
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _serve(stack: ExitStack, namespace: str, directory: Path, export: Path) -> None:
    configuration, log = directory / "ganesha.conf", directory / "ganesha.log"
    configuration.write_text(_CONFIGURATION.format(port=_NFS_PORT, directory=directory, export=export))
    command = ["ganesha.nfsd", "-F", "-f", configuration, "-L", log, "-p", directory / "ganesha.pid"]
    process = _started(stack, namespace, _SERVER_CPU, command)
    given_up = monotonic() + _PATIENCE_SECONDS
    while not (log.exists() and "NFS SERVER INITIALIZED" in log.read_text(errors="replace")):
        if process.poll() is not None or monotonic() > given_up:
            raise Unfit(f"NFS-Ganesha does not start:\n{log.read_text(errors='replace') if log.exists() else ''}")
        sleep(0.1)


def _relay(stack: ExitStack, namespace: str, directory: Path, port: int, added: int) -> subprocess.Popen[str]:
    one_way = added * _NS_A_MICROSECOND // 2
    process = _started(stack, namespace, _CLIENT_CPU, [directory / "relay", port, "127.0.0.1", _NFS_PORT, one_way])
    _line(process)
    return process


def _line(process: subprocess.Popen[str]) -> str:
    """The next line that the process says."""
    line = process.stdout.readline() if process.stdout else ""
    if not line:
        raise Unfit(f"{process.args!r} has ended; its error is above")
    return line
