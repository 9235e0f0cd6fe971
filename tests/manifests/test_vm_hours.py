"""The recorded share of VM-hours together, by Prometheus' own evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest
from support.drivers.prometheus import against, write_rules

WINDOWS: Final = ("1d", "7d", "30d")


class Case(NamedTuple):
    """Series of VM-seconds by minutes, when the ratio is asked for, and the ratio, or that of each window.

    None if there must be none.
    """

    series: dict[str, str]
    at: str
    ratio: float | Mapping[str, float] | None


def of(state: str, pod: str = "a") -> str:
    """Return the series of a state that one replica counts."""
    return f'kubevirt_coschedule_vm_seconds_total{{state="{state}",pod="{pod}"}}'


CASES: Final = {
    "all together": Case({of("together"): "0+60x60", of("apart"): "0x60"}, "1h", 1),
    "three of four": Case({of("together"): "0+180x60", of("apart"): "0+60x60"}, "1h", 0.75),
    "one of four, others stuck and pending": Case(
        {of("together"): "0+60x60", of("apart"): "0+60x60", of("stuck"): "0+60x60", of("pending"): "0+60x60"},
        "1h",
        0.25,
    ),
    "free and unknown do not count": Case(
        {of("together"): "0+60x60", of("apart"): "0+60x60", of("free"): "0+600x60", of("unknown"): "0+600x60"},
        "1h",
        0.5,
    ),
    "two replicas that see the same": Case(
        {of(state, pod): f"0+{step}x60" for state, step in (("together", 180), ("apart", 60)) for pod in "ab"},
        "1h",
        0.75,
    ),
    "a container that starts again": Case(
        {of("together"): "6000+180x30 0+180x30", of("apart"): "900+60x30 0+60x30"}, "1h", 0.75
    ),
    "a rollout does not weigh the new pod's time less": Case(
        {
            of("together"): "0+60x60 _x60",
            of("apart"): "0x60 _x60",
            of("together", "b"): "_x60 0x60",
            of("apart", "b"): "_x60 0+60x60",
        },
        "2h",
        0.5,
    ),
    "no VM with a share-manager": Case(
        {of("together"): "0x60", of("apart"): "0x60", of("free"): "0+60x60"}, "1h", None
    ),
    "no webhook": Case({}, "1h", None),
    "two days together, then two apart": Case(
        {of("together"): "0+60x2880 172800x2880", of("apart"): "0x2880 0+60x2880"},
        "96h",
        {"1d": 0, "7d": 0.5, "30d": 0.5},
    ),
}


WRONG: Final = "a wrong ratio"  # otherwise the test would accept anything


def as_read(case: Case) -> dict[str, Any]:
    """Return the case as promtool reads it: the ratio of each window."""
    ratios = case.ratio if isinstance(case.ratio, Mapping) else dict.fromkeys(WINDOWS, case.ratio)
    expected = {
        f"abs(kubevirt_coschedule:vm_together:ratio_{window} - {ratio or 0}) <bool 0.02": []
        if ratio is None
        else [{"labels": "{}", "value": 1}]
        for window, ratio in ratios.items()
    }
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": case.at, "exp_samples": samples} for query, samples in expected.items()
        ],
    }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool says against each case; nothing if its ratios are as expected."""
    directory = tmp_path_factory.mktemp("hours")
    write_rules(directory)
    cases = {**CASES, WRONG: CASES["three of four"]._replace(ratio=0.5)}
    return against({name: as_read(case) for name, case in cases.items()}, directory, every="30m")


@pytest.mark.parametrize("name", [*CASES, WRONG])
def test_the_ratio_is_that_of_the_vm_hours_that_count(name: str, told: dict[str, str]) -> None:
    """In each window, as the rules record it."""
    assert bool(told[name]) is (name == WRONG), told[name]
