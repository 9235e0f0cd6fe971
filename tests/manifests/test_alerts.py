"""The alerts, by Prometheus' own evaluator: each fires when it should, with its text, and not otherwise."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.drivers.prometheus import ALERTS, RUNBOOK, against, alerts, promtool, records, write_rules
from support.scenarios.alert_cases import CASES, DB01, Case

NAMES: Final = [rule["alert"].removeprefix("KubevirtCoschedule") for rule in alerts()]


def rule(name: str) -> dict[str, Any]:
    """Return the alert of that name."""
    (found,) = [each for each in alerts() if each["alert"] == f"KubevirtCoschedule{name}"]
    return found


def expected(case: Case) -> list[dict[str, Any]]:
    """Return the alerts that promtool must see."""
    if case.labels is None:
        return []
    found = rule(case.alert)
    return [
        one(found, labels, case.value) for labels in ([case.labels] if isinstance(case.labels, dict) else case.labels)
    ]


def one(found: dict[str, Any], labels: dict[str, str], value: str) -> dict[str, Any]:
    """Return an alert of this rule with its text."""
    words = {f"{{{{ $labels.{name} }}}}": text for name, text in labels.items()}
    words |= {f"{{{{ $value{how} }}}}": value for how in ("", " | humanizeDuration", " | humanizePercentage")}
    annotations = {}
    for name, text in found["annotations"].items():
        annotations[name] = reduce(lambda so_far, word: so_far.replace(*word), words.items(), text)
    return {"exp_labels": {**found["labels"], **labels}, "exp_annotations": annotations}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool says against each case; nothing if its alerts are as expected. One run, because a start is slow."""
    directory = tmp_path_factory.mktemp("alerts")
    write_rules(directory)
    return against({name: as_read(case) for name, case in CASES.items()}, directory)


def as_read(case: Case) -> dict[str, Any]:
    """Return the case as promtool reads it."""
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": case.at, "alertname": f"KubevirtCoschedule{case.alert}", "exp_alerts": expected(case)}
        ],
    }


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_when_it_should_and_not_otherwise(name: str, told: dict[str, str]) -> None:
    """With its labels and its text, as promtool evaluates it."""
    assert told[name] == ""


def test_an_alert_that_is_not_expected_is_seen(tmp_path: Path) -> None:
    """Otherwise the test above would accept anything."""
    write_rules(tmp_path)
    wrong = CASES["two VMs of 30 apart"]._replace(labels=[DB01])
    said = against({"wrong": as_read(wrong), "right": as_read(CASES["a pod"])}, tmp_path)
    assert "db02" in said["wrong"]
    assert said["right"] == ""


SETTINGS: Final = {
    "a larger share": ("vm_apart_share", "0.07", "two VMs of 30 apart", False),
    "any VM": ("vm_apart_share", "0", "one VM of 20 apart", True),
    "a longer time": ("vm_apart_seconds", "7200", "a VM apart since an hour", False),
    "a shorter time": ("vm_apart_seconds", "60", "a VM apart since a moment", True),
    "a smaller share of the lifetime": ("certificate_share", "0.1", "a fifth of 30 days left", False),
    "a larger share of the lifetime": ("certificate_share", "0.5", "a third of 30 days left", True),
}


def test_each_setting_changes_when_its_alert_fires(tmp_path: Path) -> None:
    """A case that fires is none any more, and the other way round."""
    seen = {}
    for name, (setting, value, case, _) in SETTINGS.items():
        file = write_rules(tmp_path)
        rules = yaml.safe_load(file.read_text(encoding="utf-8"))
        (found,) = [each for each in rules["groups"][0]["rules"] if each["record"].endswith(f":{setting}")]
        found["expr"] = f"vector({value})"
        file.write_text(yaml.safe_dump(rules), encoding="utf-8")
        quiet = CASES[case]._replace(labels=None)
        seen[name] = against({name: as_read(quiet)}, tmp_path)[name] != ""
    assert seen == {name: fires for name, (*_, fires) in SETTINGS.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_is_seen_to_fire_and_not_to_fire(name: str) -> None:
    """Every alert has a row above."""
    assert {case.labels is not None for case in CASES.values() if case.alert == name} == {True, False}


def test_the_rules_are_what_prometheus_takes(tmp_path: Path) -> None:
    """The check of promtool itself, with its linter."""
    code, said = promtool("check", "rules", "--lint-fatal", write_rules(tmp_path))
    assert code == 0, said
    assert f"{len(alerts()) + len(records())} rules found" in said


def test_a_rule_that_is_none_is_seen(tmp_path: Path) -> None:
    """Otherwise the test above would accept anything."""
    file = write_rules(tmp_path)
    file.write_text(file.read_text(encoding="utf-8").replace("absent(", "abscent("), encoding="utf-8")
    assert promtool("check", "rules", file)[0] != 0


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_says_what_it_is_and_where_its_runbook_is(name: str) -> None:
    """A summary of one line, a description, a severity, and a section of the runbook with its name."""
    found = rule(name)
    notes, alert = found["annotations"], found["alert"]
    assert "\n" not in notes["summary"]
    assert notes["description"].endswith((".", " -o wide"))  # a command has no full stop: readers copy it
    assert found["labels"]["severity"] in {"info", "warning", "critical"}
    assert notes["runbook_url"] == f"RUNBOOK#{alert.lower()}"
    assert f"\n## {alert}\n" in RUNBOOK.read_text(encoding="utf-8")


def test_the_alerts_stand_in_the_file_that_is_applied() -> None:
    """With the names that the tests above use."""
    assert ALERTS.is_file()
    assert len(NAMES) == len(set(NAMES)) == 10
