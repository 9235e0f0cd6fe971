"""Without the component for Events nothing is written: neither by default, nor where only the right is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.vm_events import clear, events, written
from support.control_plane.vm_starts import Start, Starting, nodes
from support.drivers.serving import Serving
from support.scenarios.admitting import until, until_watched

VM = Start("db01")


@contextmanager
def started(installed: Installed, *flags: str) -> Iterator[Serving]:
    """A server with these flags, and a VM whose pod it was asked about."""
    api = installed.plane.api
    with ExitStack() as here:
        cluster, starting = here.enter_context(ClusterState(api)), here.enter_context(Starting(api))
        server = here.enter_context(installed.serving(*flags))
        cluster.become([*nodes(), *VM.shelf])
        until_watched(server)
        installed.until_called()
        starting.placed(starting.vm(VM))
        yield server


@pytest.fixture(autouse=True)
def _webhook(installed: Installed) -> Iterator[None]:
    """The webhook is on, and there are no Events of ours."""
    clear(installed.plane.api)
    installed.enable()
    yield
    installed.disable()


def test_without_the_right_nothing_is_written(installed: Installed) -> None:
    """VMs start as ever, what is lost is counted, and the log says why."""
    with started(installed, "--events", "on") as server:
        until(lambda: written(server, "refused") == 1, "a refusal")
        line = server.until_logged("events not written")
    assert "events is forbidden" in line["because"]
    assert events(installed.plane.api) == []


def test_switched_off_nothing_is_tried(installed: Installed) -> None:
    """As it is by default."""
    with started(installed) as server:
        assert sum(written(server, outcome) for outcome in ("written", "refused", "failed")) == 0
    assert events(installed.plane.api) == []
