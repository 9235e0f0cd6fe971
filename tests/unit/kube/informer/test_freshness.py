"""Freshness alone, step by step."""

from __future__ import annotations

import pytest

from webhook.kube.informer.connection import Freshness


def test_the_contract_step_by_step() -> None:
    """Freshness alone: listed, watched, lost, settling, watched, listed again."""
    freshness = Freshness()
    freshness.listed(100.0)
    assert (freshness.age(104.0), freshness.is_watched(104.0)) == (4.0, False)
    freshness.watch_up(105.0)
    assert [freshness.age(now) for now in (105.0, 105.9, 106.0, 195.0)] == pytest.approx([5.0, 5.9, 0.0, 0.0])
    assert (freshness.age(195.1), freshness.fresh(195.1)) == (pytest.approx(95.1), False)
    freshness.heard(196.0)
    assert [freshness.age(now) for now in (196.0, 286.0, 286.5)] == pytest.approx([0.0, 0.0, 90.5])
    freshness.watch_down(200.0)
    assert (freshness.age(203.0), freshness.fresh(210.0), freshness.fresh(210.1)) == (3.0, True, False)
    freshness.watch_up(300.0)
    assert freshness.age(301.0) == 0.0
    freshness.watch_down(300.5)
    assert freshness.age(302.0) == 102.0, (
        "at 300.5 that watch had not settled: the last that is known is the end of the first"
    )
