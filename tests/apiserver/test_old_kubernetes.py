"""The corpus, row by row, on the oldest Kubernetes that the tests build: each row as on the newest (`test_replay`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from support.control_plane.control_plane import OLDEST, ControlPlane
from support.control_plane.installed import Installed
from support.objects.corpus import Case
from support.scenarios.replaying import Replay, rows

ROWS: Final = {case.name: case for case in rows()}
DROPPED: Final = ROWS["A pod that claims a device is not pinned hard"]
"""Kubernetes 1.30 keeps no claims of devices (DynamicResourceAllocation is off there), so no pod waits for them."""

ROWS[DROPPED.name] = replace(
    DROPPED, expect=replace(DROPPED.expect, pending=False, binds=frozenset({"node-a", "node-b"}))
)
pytestmark = pytest.mark.soak_only
ROWS_AT_LEAST: Final = 490


@pytest.fixture(scope="module")
def replay(installed_on_old: Installed) -> Iterator[Replay]:
    """The program on the old control plane."""
    with Replay(installed_on_old) as running:
        yield running


def test_the_control_plane_is_old(old_control_plane: ControlPlane) -> None:
    """What runs is what is meant to run."""
    version = old_control_plane.api.call("GET", "/version").body
    assert f"{version['major']}.{version['minor']}" == OLDEST


@pytest.mark.parametrize("case", ROWS.values(), ids=lambda case: case.name)
def test_a_row_comes_out_as_on_the_newest(case: Case, replay: Replay) -> None:
    """Affinity, annotation, warnings and node are the row's here too."""
    problems = replay.problems(case)
    assert not problems, "\n".join(problems)


def test_the_replay_is_large_enough() -> None:
    """A replay that silently lost its rows would pass."""
    assert len(ROWS) >= ROWS_AT_LEAST
