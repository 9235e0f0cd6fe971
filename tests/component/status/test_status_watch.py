"""status --watch against a scripted API server: a line for each change, a screen that is updated, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from support.drivers.serving import ROOT
from support.drivers.status_runs import objects
from support.fakes.api_server import ApiServer, Cluster, refusing, until
from support.fakes.http_line import Asked, Line
from support.fakes.live import PATHS, cluster_of, write_kubeconfig
from support.models.model_api import Answer
from support.objects import builders
from support.objects.fleets import LATEST, running_pod, served
from support.waits import MAX_WAIT_SECONDS

from webhook.core.view import Kind

pytestmark = pytest.mark.slow

_POLL_SECONDS = 0.02
_FIRST_SCREEN = "\x1b[?25h\x1b[?1049l"


class Run:
    """A run of status --watch, and what it has printed so far."""

    def __init__(self, process: asyncio.subprocess.Process, output: Callable[[], str]) -> None:
        self.process = process
        self._output = output

    @property
    def out(self) -> str:
        """All of standard output."""
        return self._output()

    async def until(self, *parts: str) -> None:
        """Wait until all of these texts were printed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_WAIT_SECONDS):
                while not self._has(parts) and self.process.returncode is None:  # noqa: ASYNC110 - a file's end
                    await asyncio.sleep(_POLL_SECONDS)
        assert self._has(parts), self.out

    def _has(self, parts: tuple[str, ...]) -> bool:
        return all(part in self.out for part in parts)

    async def interrupt(self) -> int:
        """Interrupt as Ctrl-C does. Returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return await asyncio.wait_for(self.process.wait(), MAX_WAIT_SECONDS)


@pytest.fixture
def cluster() -> Cluster:
    """The VMs of the tests."""
    return cluster_of(*(each for each in objects() if not each["kind"].startswith("VirtualMachine")))


@pytest.fixture
async def server(cluster: Cluster) -> AsyncIterator[ApiServer]:
    """An API server that has the VMs, and a version."""
    with cluster.fault(_version, when=lambda asked: asked.path == "/version"):
        async with ApiServer(cluster) as started:
            yield started


async def _version(_: Asked, line: Line) -> None:
    await line.answer(*Answer(200, b'{"major": "1", "minor": "36"}'))


@asynccontextmanager
async def watching(
    server: ApiServer, directory: Path, *words: str, screen: bool = False, size: tuple[int, int] = (100, 12)
) -> AsyncIterator[Run]:
    """A run with these arguments, on a terminal of this size or into a file."""
    kubeconfig = write_kubeconfig(directory / "kubeconfig", server.url)
    printed, errors = directory / "out", directory / "err"
    command = [sys.executable, "-m", "webhook", "status", "-A", "--watch", "--kubeconfig", str(kubeconfig), *words]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": str(size[0]), "LINES": str(size[1])}
    master, slave = pty.openpty() if screen else (-1, os.open(printed, os.O_CREAT | os.O_WRONLY))
    shown = bytearray()

    def read() -> str:
        if not screen:
            return printed.read_text()
        with suppress(BlockingIOError, OSError):
            while piece := os.read(master, 65536):
                shown.extend(piece)
        return shown.decode()

    with errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=slave, stderr=stderr, env=environment)
    os.close(slave)
    if screen:
        os.set_blocking(master, False)
    try:
        yield Run(process, read)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if screen:
            os.close(master)


def put(cluster: Cluster, kind: Kind, each: builders.Object) -> None:
    """Add or replace this object."""
    cluster.collections[PATHS[kind]].put(each)


async def test_each_change_is_a_line(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """First every VM, then each change: moved, gone. Each line has its time, and none comes twice."""
    async with watching(server, tmp_path) as run:
        await run.until("together  vms/db on node-a (root: node-a): ShareManagerPod: ", "apart     vms/web on ")
        await until(lambda: len(run.out.splitlines()) == 6)
        put(cluster, Kind.SHARE_MANAGER_POD, served("page", "node-a", LATEST)[1])
        await run.until("together  vms/web on node-a (page: node-a)")
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].remove("virt-launcher-web-aaaaa", "vms")
        await run.until("gone      vms/web\n")
        lines = run.out.splitlines()
        assert len(lines) == 8
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  [a-z]+ +\S+/\S+", line) for line in lines)
        assert await run.interrupt() == 130
    assert (tmp_path / "err").read_text() == ""


async def test_the_api_server_is_not_polled(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """The program sends two GETs, then one list and one watch for each of the six kinds, until a watch ends."""
    async with watching(server, tmp_path) as run:
        await run.until("vms/web")
        await until(lambda: len(server.asked) == 14)
        for node in ("node-a", "node-c"):
            put(cluster, Kind.SHARE_MANAGER_POD, served("page", node, LATEST)[1])
            await run.until(f"vms/web on node-a (page: {node})")
        assert len(server.asked) == 14


async def test_json_is_a_line_for_each_change(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """The lines are for programs."""
    async with watching(server, tmp_path, "-o", "json") as run:
        await run.until('"name":"web"')
        cluster.collections[PATHS[Kind.VIRT_LAUNCHER_POD]].remove("virt-launcher-web-aaaaa", "vms")
        await run.until('"gone"')
        lines = [json.loads(line) for line in run.out.splitlines()]
    assert {line["name"]: line["state"] for line in lines} == {
        "far": "together",
        "db": "together",
        "web": "gone",
        "mail": "stuck",
        "cold": "free",
        "new": "pending",
    }


async def test_with_apart_a_vm_is_printed_until_it_is_well(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """When it becomes apart or stuck, and when it is well again; a VM that is never apart or stuck is not printed."""
    async with watching(server, tmp_path, "--apart") as run:
        await run.until("vms/mail", "vms/web")
        put(cluster, Kind.SHARE_MANAGER_POD, served("page", "node-a", LATEST)[1])
        await run.until("together  vms/web")
        put(cluster, Kind.SHARE_MANAGER_POD, served("root", "node-c", LATEST)[1])
        await run.until("apart     vms/db")
        assert "vms/cold" not in run.out
        assert "together  vms/db" not in run.out


async def test_a_terminal_has_a_table_that_is_updated(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """On the alternate screen, overwritten and never cleared; at the end the terminal shows its main screen again."""
    async with watching(server, tmp_path, screen=True) as run:
        await run.until("6 VMs: 2 together, 1 apart, 1 stuck, 1 pending, 1 free", "end with Ctrl-C")
        put(cluster, Kind.SHARE_MANAGER_POD, served("page", "node-a", LATEST)[1])
        await run.until("6 VMs: 3 together, 1 stuck, 1 pending, 1 free")
        assert run.out.startswith("\x1b[?1049h\x1b[?25l\x1b[H")
        assert "\x1b[2J" not in run.out
        lines = run.out.rpartition("\x1b[H")[2].replace("\x1b[K", "").replace("\x1b[J", "").splitlines()
        assert max(map(len, lines)) <= 100
        assert await run.interrupt() == 130
        assert _FIRST_SCREEN in run.out


async def test_the_worst_stand_first_and_the_rest_is_counted(
    server: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """With 500 more VMs on a small terminal: stuck, apart, and below the screen how many more, and how many of them
    are in trouble.
    """
    for number in range(500):
        node = "node-c" if number < 20 else "node-a"
        put(cluster, Kind.VIRT_LAUNCHER_POD, running_pod(f"vm-{number:03}", "root", node))
    async with watching(server, tmp_path, screen=True, size=(80, 24)) as run:
        await run.until("506 VMs: 482 together, 21 apart, 1 stuck, 1 pending, 1 free", "... 487 more, 3 of them apart")
        screen = run.out.rpartition("\x1b[H")[2].replace("\x1b[K", "").replace("\x1b[J", "")
    lines = screen.replace("\r", "").split("\n")
    assert (len(lines), max(map(len, lines))) == (24, 80)
    assert lines[1].split()[1] == "mail"
    assert [line.split()[1] for line in lines[2:20]] == [f"vm-{number:03}" for number in range(18)]


async def test_missing_permissions_are_named_once(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """On standard error; rows that do not need them are complete."""
    path = PATHS[Kind.PERSISTENT_VOLUME]
    with cluster.fault(refusing(403, "Forbidden", "not for you"), when=lambda asked: asked.path == path):
        async with watching(server, tmp_path) as run:
            await run.until("unknown   vms/db on node-a (root: -): ClaimLookupFailed: ")
            await until(lambda: "not for you\n" in (tmp_path / "err").read_text())
    assert (tmp_path / "err").read_text().count(
        "not up to date: persistentvolumes: forbidden: 403 Forbidden: not for you"
    ) == 1


async def test_without_the_pods_there_is_nothing_to_watch(server: ApiServer, cluster: Cluster, tmp_path: Path) -> None:
    """The program ends, and names the missing permission."""
    path = PATHS[Kind.VIRT_LAUNCHER_POD]
    with cluster.fault(refusing(403, "Forbidden", "not for you"), when=lambda asked: asked.path == path):
        async with watching(server, tmp_path) as run:
            assert await asyncio.wait_for(run.process.wait(), MAX_WAIT_SECONDS) == 2
    assert (
        "virt-launcher pods: forbidden: 403 Forbidden: not for you; expected to list them"
        in (tmp_path / "err").read_text()
    )
