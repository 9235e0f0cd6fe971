"""The recorded share of VM-hours together, by Prometheus' own evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml
from support.drivers.prometheus import promtool, write_rules

WINDOWS: Final = ("1d", "7d", "30d")


class Case(NamedTuple):
    """Series of VM-seconds by minutes, when the ratio is asked for, and the ratio; None if there must be none."""

    series: dict[str, str]
    at: str
    ratio: float | None


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
}


def evaluated(case: Case, directory: Path) -> str:
    """Return what promtool says against the case; nothing if the ratios are as expected."""
    write_rules(directory)
    expected = [] if case.ratio is None else [{"labels": "{}", "value": 1}]
    queries = [
        f"abs(kubevirt_coschedule:vm_together:ratio_{window} - {case.ratio or 0}) <bool 0.02" for window in WINDOWS
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": case.at, "exp_samples": expected} for query in queries],
    }
    file = directory / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
    code, said = promtool("test", "rules", file)
    return said if code else ""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_ratio_is_that_of_the_vm_hours_that_count(case: Case, tmp_path: Path) -> None:
    """In each window, as the rules record it."""
    assert evaluated(case, tmp_path) == ""


def test_a_wrong_ratio_is_seen(tmp_path: Path) -> None:
    """Otherwise the test above would accept anything."""
    assert "got" in evaluated(CASES["three of four"]._replace(ratio=0.5), tmp_path)


@pytest.mark.parametrize(("window", "ratio"), [("1d", 0), ("7d", 0.5), ("30d", 0.5)])
def test_a_window_ends_where_its_name_says(window: str, ratio: float, tmp_path: Path) -> None:
    """VMs were together for two days, then apart for two days: the last day knows only the latter."""
    write_rules(tmp_path)
    query = f"abs(kubevirt_coschedule:vm_together:ratio_{window} - {ratio}) <bool 0.02"
    series = {of("together"): "0+60x2880 172800x2880", of("apart"): "0x2880 0+60x2880"}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": "96h", "exp_samples": [{"labels": "{}", "value": 1}]},
        ],
    }
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": [test]}))
    code, said = promtool("test", "rules", file)
    assert code == 0, said
