"""What seeds have found: each row is a run in which an invariant did not hold, or does not hold yet."""

from __future__ import annotations

import pytest
from simulation import hunt
from simulation.policies import REUNITE
from simulation.run import Run

_BUDGET = "of a migration of ours whose target pod runs the budget counts one node: its row has the target's node"
_BACKOFF = "the controller forgets a deleted migration if the answer to the deletion is lost"


@pytest.mark.soak
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(
            Run(REUNITE.title, 11, "short"),
            marks=pytest.mark.xfail(strict=True, reason=f"webhook/core/reunite/decide.py: {_BUDGET}"),
        ),
        pytest.param(
            Run(REUNITE.title, 18, "short"),
            marks=pytest.mark.xfail(strict=True, reason=f"webhook/reunite/controller.py: {_BACKOFF}"),
        ),
    ],
    ids=lambda run: " ".join(run.arguments),
)
def test_a_run_that_broke_an_invariant_holds_all_of_them(run: Run) -> None:
    """A row that still fails says where the cause is."""
    hunt.play(run)
