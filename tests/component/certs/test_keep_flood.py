"""Thousands of half requests at the health port of a real `keep`, which answers probes meanwhile."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from support.drivers.flooding import HALF, PROBE, PROBE_EVERY, Late, files, open_connections, silent
from support.drivers.serving import Client, port_of, resident_mib, spawned, until_logged
from support.scenarios.admitting import until
from support.sizes import size

from webhook.component_base.server.connection import DEFAULT_LIMITS, MOST_HEAD_BYTES

pytestmark = [pytest.mark.slow, pytest.mark.soak]

REQUESTS: Final = size("HALF_REQUESTS")
_OBJECTS_BYTES: Final = 12 * 1024  # of a connection: its transport, protocol and parser; 9.5 KiB by tracemalloc
_GROWTH_MIB: Final = DEFAULT_LIMITS.connections * (2 * MOST_HEAD_BYTES + _OBJECTS_BYTES) / 2**20
"""What the connections may hold: each its head, once as it came and once as the parser stores it."""
_FILES_OF_ITS_OWN: Final = 100


def test_half_requests_fill_neither_memory_nor_files(tmp_path: Path) -> None:
    """`keep` holds no more of them than a port of `serve` does. Each probe has its answer within 1 s meanwhile."""
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "x", "user": {}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    words = ["-m", "certs", "keep", "--kubeconfig", str(tmp_path / "config"), "--listen", "127.0.0.1:0"]
    late = Late()
    with ExitStack() as stack:
        stack.enter_context(files(REQUESTS + _FILES_OF_ITS_OWN))
        keep = stack.enter_context(spawned([sys.executable, *words], tmp_path / "log"))
        port = port_of(until_logged(keep, tmp_path / "log", "keeping")["listen"])
        late.note(_probed(port))
        idle = resident_mib(keep.pid)
        for number in range(REQUESTS):
            half = stack.enter_context(silent(port, 1 + number))
            half.sendall(HALF)
            if number % PROBE_EVERY == 0:
                late.note(_probed(port))
        held, grown = open_connections(port), resident_mib(keep.pid) - idle
        sys.stdout.write(
            f"{REQUESTS} half requests: {held} connections held, {idle:.0f} MiB idle, {grown:+.0f} after\n"
        )
        until(
            lambda: open_connections(port) <= DEFAULT_LIMITS.connections, "the connections above the limit to be closed"
        )
        assert grown <= _GROWTH_MIB


def _probed(port: int) -> float:
    """The seconds that a probe took."""
    began = time.monotonic()
    with Client(port) as kubelet:
        assert kubelet.ask(PROBE).status == 200
    return time.monotonic() - began
