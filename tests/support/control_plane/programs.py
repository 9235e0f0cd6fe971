"""Programs as processes of ours, started, waited for until they answer, and stopped whole; and ports for them."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from random import SystemRandom
from typing import Final

from support.waits import MAX_WAIT_SECONDS

_POLL_SECONDS: Final = 0.05
_SHOWN_LINES: Final = 30  # of a log, where a program fails

# A program's process dies with ours, however ours ends: Linux' PR_SET_PDEATHSIG (1), kept over an exec.
_BOUND_TO_US: Final = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL); os.execv(sys.argv[1], sys.argv[1:])"
)


class Program:
    """A process of ours with its output in a file, that can be stopped and started again."""

    def __init__(self, path: Path, flags: Sequence[str], log: Path) -> None:
        self.name, self.log = path.name, log
        self._command = [sys.executable, "-c", _BOUND_TO_US, str(path), *flags]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is appended."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - a program that we have built
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it with this signal, and with SIGKILL where that takes too long."""
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(MAX_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def until_ready(self, url: str, trust: ssl.SSLContext | None = None) -> None:
        """Wait until it answers 200 at that address; fails with the end of its log."""
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while not _answers(url, trust):
            assert self._process is not None, f"{self.name} was not started"
            try:
                code: int | None = self._process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                code = None
            if code is not None or time.monotonic() > deadline:
                ended = "is not ready" if code is None else f"ended with {code}"
                raise AssertionError(f"{self.name} {ended}; its log ends:\n{self.tail()}")

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:])


def _answers(url: str, trust: ssl.SSLContext | None) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    try:
        with opener.open(url, timeout=MAX_WAIT_SECONDS) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


_PORTS: Final = range(10_000, 32_768)  # Linux gives 32768 to 60999: net.ipv4.ip_local_port_range
_WORKERS: Final = 4  # --maxprocesses of the Makefile: a port that one worker has drawn is never another one's
_WORKER: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
_given: set[int] = set()


def free_port(host: str) -> int:
    """A port of this address that nobody listens on, and that this function has not returned before."""
    while True:
        port = SystemRandom().choice(_PORTS[_WORKER::_WORKERS])
        if port in _given:
            continue
        try:
            socket.create_server((host, port)).close()
        except OSError:
            continue
        _given.add(port)
        return port
