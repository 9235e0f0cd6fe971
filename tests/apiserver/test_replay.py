"""The corpus, row by row, on a real control plane (`replaying` says how). The soak has the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec
import pytest
from support.control_plane.control_plane import NEWEST, OLDEST
from support.objects.corpus import Case
from support.scenarios.replaying import Replay, rows

ROWS: Final = rows()
ROWS_AT_LEAST: Final = 490
DROPPED: Final = "A pod that claims a device is not pinned hard"
"""Kubernetes 1.30 keeps no claims of devices (DynamicResourceAllocation is off there), so no pod waits for them."""
VERSIONS: Final = [NEWEST, pytest.param(OLDEST, marks=pytest.mark.soak_only)]


@pytest.fixture(scope="module")
def replay(request: pytest.FixtureRequest) -> Iterator[Replay]:
    """The program on the control plane, in the mode that a row asks for."""
    installed = request.getfixturevalue("installed" if request.param == NEWEST else "installed_on_old")
    found = installed.plane.api.call("GET", "/version").body
    assert f"{found['major']}.{found['minor']}" == request.param
    with Replay(installed) as running:
        yield running


@pytest.mark.parametrize("replay", VERSIONS, indirect=True, scope="module")
@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_row_comes_out_as_the_evaluator_says(case: Case, replay: Replay, request: pytest.FixtureRequest) -> None:
    """The stored pod has the row's affinity and the evaluator's words, and is bound to one of its nodes or none."""
    if case.name == DROPPED and request.node.callspec.params["replay"] == OLDEST:
        expect = msgspec.structs.replace(case.expect, pending=False, binds=frozenset({"node-a", "node-b"}))
        case = replace(case, expect=expect)
    problems = replay.problems(case)
    assert not problems, "\n".join(problems)


def test_the_replay_is_large_enough() -> None:
    """A replay that silently lost its rows would pass."""
    assert len(ROWS) >= ROWS_AT_LEAST
