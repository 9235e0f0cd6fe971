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
from support.scenarios.admitting import admitted, until

MAX_SECONDS: Final = 60.0  # three programs start at once: 10 s on two busy cores


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """One with nothing of ours."""
    with without_us(tmp_path) as own:
        yield own


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
        required = until(
            lambda: pod.required if (pod := admitted(plane.api, "disk")).decision else [], "a pod with a decision"
        )
        seconds = time.monotonic() - started
    print(f"from the apply to the first mutated pod: {seconds:.1f} s")  # noqa: T201 - the figure, under -rP
    assert required == ["node-a"]
    assert seconds < MAX_SECONDS
