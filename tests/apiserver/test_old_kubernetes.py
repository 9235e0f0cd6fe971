"""One row of the corpus for each decision and reason, on the oldest Kubernetes that the tests build."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.control_plane.control_plane import ControlPlane
from support.control_plane.installed import Installed
from support.objects.corpus import Case
from support.scenarios.replaying import Replay, rows

ROWS = list({(case.expect.decision, case.expect.reason): case for case in rows()}.values())
ROWS_AT_LEAST = 35


@pytest.fixture(scope="module")
def replay(installed_on_old: Installed) -> Iterator[Replay]:
    """The program on the old control plane."""
    with Replay(installed_on_old) as running:
        yield running


def test_the_control_plane_is_old(old_control_plane: ControlPlane) -> None:
    """What runs is what is meant to run."""
    version = old_control_plane.api.call("GET", "/version").body
    assert (version["major"], version["minor"]) == ("1", "34")


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_a_row_comes_out_as_on_the_newest(case: Case, replay: Replay) -> None:
    """Affinity, annotation, warnings and node are the row's here too."""
    problems = replay.problems(case)
    assert not problems, "\n".join(problems)


def test_the_choice_of_rows_is_large_enough() -> None:
    """A choice that silently lost its rows would pass."""
    assert len(ROWS) >= ROWS_AT_LEAST
