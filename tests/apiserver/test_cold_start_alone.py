"""A VM starts from nothing while the program is down, or hangs: its share-manager pod is still created."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import Installed
from support.control_plane.kube_api import Object
from support.control_plane.vm_starts import NODES, Start, Starting, decision, nodes
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, Counted, until
from support.scenarios.cold_starting import WEBHOOK

VM = Start("db01")
TIMEOUT_SECONDS: Final = 2  # of this entry in the manifests; the other's is 3
TIMED_OUT: Final = "context deadline exceeded|Client.Timeout|i/o timeout"


@pytest.fixture
def starting(installed: Installed) -> Iterator[Starting]:
    """A VM that is stopped; the webhook is on."""
    installed.enable()
    with ClusterState(installed.plane.api) as cluster, Starting(installed.plane.api) as starting:
        cluster.become([*nodes(), *VM.shelf])
        yield starting
    installed.disable()


def assert_as_asked(pod: Object) -> None:
    """Nobody has had a say in it."""
    assert ("affinity" in pod["spec"], decision(pod)) == (False, "")


def until_called(starting: Starting) -> None:
    """Wait until the API server calls the share-manager's entry: nobody is there, which it counts."""
    counted = Counted(starting.api)

    def is_called() -> float:
        starting.share_manager(VM, dryRun="All")
        return counted.more()(FAIL_OPEN, name=WEBHOOK)

    until(is_called, "a call")


def test_nobody_is_there(starting: Starting) -> None:
    """Both pods are created and scheduled; the API server counts each call that failed open."""
    until_called(starting)
    counted = Counted(starting.api)
    node, pod = starting.start(VM)
    assert_as_asked(pod)
    assert node in NODES
    assert starting.placed(pod) in NODES
    more = counted.more()
    assert (more(FAIL_OPEN, name=WEBHOOK), more(FAIL_OPEN), more(REJECTIONS)) == (1, 2, 0)


def test_it_hangs(starting: Starting, installed: Installed) -> None:
    """No later than the entry's own timeout: the shorter one, for Longhorn's controllers wait for it."""
    with installed.serving() as serving:
        installed.until_called()
        node = starting.placed(starting.vm(VM))
        starting.ticket(VM, node)
        counted, log = Counted(starting.api), installed.plane.api_server.log
        logged = log.stat().st_size
        serving.signal(signal.SIGSTOP)

        pod = starting.share_manager(VM)
        serving.signal(signal.SIGCONT)
        more = counted.more()
    assert_as_asked(pod)
    assert starting.placed(pod) in NODES
    assert (more(FAIL_OPEN, name=WEBHOOK), more(FAIL_OPEN), more(REJECTIONS)) == (1, 1, 0)
    assert more("apiserver_admission_webhook_admission_duration_seconds_sum", name=WEBHOOK) >= TIMEOUT_SECONDS
    told = log.read_bytes()[logged:].decode()
    assert re.search(
        rf"failing open {WEBHOOK}.*/mutate/share-manager\?timeout={TIMEOUT_SECONDS}s.*: ({TIMED_OUT})", told
    )
