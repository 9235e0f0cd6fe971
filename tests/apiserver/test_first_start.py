"""The first start, from a cluster that has never seen the program: nobody gives it a certificate, or anything else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.control_plane.certs_process import CONFIGURATION, SECRET, trust
from support.control_plane.control_plane import ControlPlane
from support.control_plane.unattended import Unattended, without_us
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Counted, admitted, until

MAX_SECONDS: Final = 60.0  # three programs start at once: 10 s on two busy cores


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One for all tests here; each leaves nothing of ours."""
    with without_us(tmp_path_factory.mktemp("own")) as own:
        yield own


def first_pod(plane: ControlPlane) -> list[str]:
    """The nodes that the first pod with a decision requires."""
    return until(lambda: pod.required if (pod := admitted(plane.api, "disk")).decision else [], "a pod with a decision")


def test_an_apply_is_all_that_a_human_does(plane: ControlPlane, tmp_path: Path) -> None:
    """All programs start at once, in an order of their own; after some seconds pods are pinned."""
    assert plane.api.find(CONFIGURATION) is None
    started = time.monotonic()
    with Unattended(plane, tmp_path) as install:
        assert plane.api.find(SECRET) is None
        assert trust(plane.api.get(CONFIGURATION)) == ""
        install.start_servers()
        install.start_keeper()
        install.until_serving()
        required = first_pod(plane)
        seconds = time.monotonic() - started
    print(f"from the apply to the first mutated pod: {seconds:.1f} s")  # noqa: T201 - the figure, under -rP
    assert required == ["node-a"]
    assert seconds < MAX_SECONDS


def test_servers_that_come_long_before_the_controller_wait_and_pods_do_not(plane: ControlPlane, tmp_path: Path) -> None:
    """They say what they wait for, and until then pods are created as they are: no call is rejected."""
    counted = Counted(plane.api)
    with Unattended(plane, tmp_path) as install:
        install.start_servers()
        for server in install.servers:
            assert "tls.crt" in server.until_logged("waiting for a certificate")["because"]
            server.until_logged("not serving yet")
        early = admitted(plane.api, "disk")
        install.start_keeper()
        install.until_serving()
        assert first_pod(plane) == ["node-a"]
    more = counted.more()
    assert (early.decision, early.required, early.preferred) == ("", [], [])
    assert more(FAIL_OPEN, name=WEBHOOK) > 0
    assert more(REJECTIONS, name=WEBHOOK) == 0
