"""What seeds have found: each row is a run in which an invariant did not hold once, and why."""

from __future__ import annotations

import pytest
from simulation.policies import REUNITE
from simulation.run import Run


@pytest.mark.soak
@pytest.mark.parametrize(
    "run",
    [
        Run(REUNITE.title, 11, "short"),  # budget: a VM whose target pod ran was counted on its target only
        Run(REUNITE.title, 18, "short"),  # back-off: a deletion whose answer was lost was forgotten
        Run(REUNITE.title, 5, "rough", "restarts after cordons"),  # stranded: a pod left the node that it preferred
        Run(REUNITE.title, 4454, "short"),  # budget: a migration was not counted while its share-manager had no node
        Run(REUNITE.title, 709, "rough"),  # evidence: the check took no ownerID while a pod was terminating
    ],
    ids=lambda run: " ".join(run.arguments),
)
def test_a_run_that_broke_an_invariant_holds_all_of_them(run: Run) -> None:
    """The program was changed after each of them, or the check."""
    run.play()
