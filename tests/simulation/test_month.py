"""The simulated month against the month that was played on real controllers (issue 15): within 3 points."""

from __future__ import annotations

import pytest
from simulation import plot, table
from simulation.policies import NONE, OURS, PLAN, REUNITE

WITHIN_POINTS = 3.0
REAL = {  # local VM-hours in %, of the first 15 days and of the month
    NONE.title: (13.3, None),
    OURS.title: (91.5, 86.4),
    PLAN.title: (99.6, None),
}


@pytest.mark.soak_only
@pytest.mark.parametrize("title", REAL)
def test_the_month_is_within_three_points_of_the_real_one(title: str) -> None:
    """The mean of four seeds: what users do at which hour is drawn."""
    result = table.play_all([title], range(1, 5))[0]
    half, whole = REAL[title]
    assert result.local_half == pytest.approx(half, abs=WITHIN_POINTS)
    if whole is not None:
        assert result.local_whole == pytest.approx(whole, abs=WITHIN_POINTS)


@pytest.mark.soak_only
def test_with_reunite_a_vm_is_with_its_share_manager_or_where_a_person_put_it() -> None:
    """The mean of two seeds. A VM that a person migrated stays for four hours. Five seeds were 99.28 to 99.31 %."""
    played = table.play_all([REUNITE.title], range(1, 3))[0]
    assert played.local_whole >= 99.2
    assert played.local_whole + table.share(played.whole, "live migration") >= 99.8


def test_the_table_and_the_picture_show_what_was_played() -> None:
    """One line and one bar for a rule, with the shares of the whole month."""
    result = table.play(NONE.title, 1)
    assert 10.0 <= result.local_half <= 20.0
    rows = list(table.lines([result]))
    assert rows[2].startswith(f"| none | {result.local_half:.1f} % | {result.local_whole:.1f} % |")
    picture = plot.svg([result])
    assert picture == plot.svg([result])
    assert f"{result.local_whole:.1f} %" in picture
    assert "prefers-color-scheme: dark" in picture
