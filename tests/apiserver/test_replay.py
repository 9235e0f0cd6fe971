"""The corpus, row by row, on a real kube-apiserver and kube-scheduler: `replaying` says how."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.control_plane.installed import Installed
from support.objects.corpus import Case
from support.scenarios.replaying import Replay, rows

ROWS = rows()
ROWS_AT_LEAST = 490


@pytest.fixture(scope="module")
def replay(installed: Installed) -> Iterator[Replay]:
    """The program on the control plane, in the mode that a row asks for."""
    with Replay(installed) as running:
        yield running


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_row_comes_out_as_the_evaluator_says(case: Case, replay: Replay) -> None:
    """The stored pod has the row's affinity and the evaluator's words, and is bound to one of its nodes or none."""
    problems = replay.problems(case)
    assert not problems, "\n".join(problems)


def test_the_replay_is_large_enough() -> None:
    """A replay that silently lost its rows would pass."""
    assert len(ROWS) >= ROWS_AT_LEAST
