"""The alerts, by Prometheus' own evaluator: each fires when it should, with its text, and not otherwise."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from support.drivers import prometheus
from support.drivers.prometheus import ALERTS, alerts, promtool, records, write_rules

from webhook.telemetry.exposition import PREFIX

DAY: Final = 86_400
HOOK: Final = "virt-launcher.kubevirt-coschedule.io"
POD: Final = 'pod="kubevirt-coschedule-7d9-x"'
FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
NAMES: Final = [rule["alert"].removeprefix("KubevirtCoschedule") for rule in alerts()]


class Case(NamedTuple):
    """Series by minutes, when they are judged, the labels of the alert that fires then, and what its words are about.

    `labels` is None where none fires. `value`: what stands for the alert's value in its words.
    """

    alert: str
    series: dict[str, str]
    at: str
    labels: dict[str, str] | None = None
    value: str = ""


def ours(name: str, labels: str = "") -> str:
    """Return a series of the webhook."""
    return f"{PREFIX}{name}{{{labels}}}"


def hook(name: str = HOOK) -> str:
    """Return the API server's count for a webhook."""
    return f'{FAIL_OPEN}{{name="{name}",type="admit",instance="a"}}'


STARTS: Final = ours("vm_starts_total", 'decision="nothing"')
CALLS: Final = ours("admission_duration_seconds_count", 'entry="virt-launcher"')
FRESH: Final = ours("cache_fresh", f'cache="nodes",{POD}')
EXPIRY: Final = ours("certificate_expiry_timestamp_seconds", POD)
PROBLEM: Final = ours("certificate_problem", POD)
APART: Final = ours("vms_oldest_timestamp_seconds", 'state="apart"')
STUCK: Final = ours("vms", 'state="stuck",instance="a"')
WAITING: Final = ours("reunite_waiting_vms", 'rule="Stopped"')
ONE_POD: Final = {"pod": "kubevirt-coschedule-7d9-x"}

CASES: Final = {
    # What the API server sees.
    "a count that goes up": Case("FailOpen", {hook(): "3x10 4x10"}, "12m", {"name": HOOK}),
    "a count that begins": Case("FailOpen", {hook(): "_x10 1x10"}, "12m", {"name": HOOK}),
    "a count that went up long ago": Case("FailOpen", {hook(): "3x10 4x30"}, "30m"),
    "a count that stays": Case("FailOpen", {hook(): "3x30"}, "20m"),
    "another's webhook": Case("FailOpen", {hook("x.example.io"): "0 5x20"}, "12m"),
    # Starts without calls.
    "a start that nobody was asked about": Case("NotAsked", {STARTS: "0x10 1x30", CALLS: "7x40"}, "20m", {}),
    "the same of one replica, while the other is new": Case("NotAsked", {STARTS: "0x10 1x30"}, "20m", {}),
    "a start that was missed among others": Case("NotAsked", {STARTS: "0x10 1x30", CALLS: "7x8 8x32"}, "20m"),
    "no start": Case("NotAsked", {STARTS: "3x40", CALLS: "7x40"}, "30m"),
    "a start 2 minutes ago": Case("NotAsked", {STARTS: "0x10 1x30", CALLS: "7x40"}, "13m"),
    "a start an hour ago": Case("NotAsked", {STARTS: "0x10 1x90", CALLS: "7x100"}, "80m"),
    # The pods.
    "no pod from the start": Case("Absent", {}, "15m", {}),
    "pods that went away": Case("Absent", {ours("build_info"): "1x10 _x30"}, "30m", {}),
    "a pod": Case("Absent", {ours("build_info"): "1x40"}, "30m"),
    "a rollout": Case("Absent", {ours("build_info", 'pod="a"'): "1x10 _x30", ours("build_info"): "_x14 1x30"}, "30m"),
    # Caches.
    "a cache that is stale": Case("CacheStale", {FRESH: "1x10 0x20"}, "17m", {"cache": "nodes", **ONE_POD}),
    "a cache that was stale for a moment": Case("CacheStale", {FRESH: "1x10 0x2 1x20"}, "17m"),
    "a cache that is fresh": Case("CacheStale", {FRESH: "1x20"}, "17m"),
    # The certificate.
    "four days left": Case("CertificateExpiry", {EXPIRY: f"{4 * DAY + 900}x20"}, "15m", ONE_POD, "4d 0h 0m 0s"),
    "six days left": Case("CertificateExpiry", {EXPIRY: f"{6 * DAY}x20"}, "15m"),
    "a certificate that was renewed in time": Case("CertificateExpiry", {EXPIRY: f"{4 * DAY}x5 {30 * DAY}x20"}, "15m"),
    "a pair that can't be taken": Case("CertificateNotTaken", {PROBLEM: "0x5 1x30"}, "17m", ONE_POD),
    "a torn pair for a moment": Case("CertificateNotTaken", {PROBLEM: "0x5 1x2 0x30"}, "17m"),
    # VMs.
    "a VM apart since an hour": Case("VMApart", {APART: "0x90"}, "70m", {}, "1h 10m 0s"),
    "one replica knows it longer": Case(
        "VMApart",
        {APART: "3600x90", ours("vms_oldest_timestamp_seconds", 'state="apart",x="y"'): "0x90"},
        "70m",
        {},
        "1h 10m 0s",
    ),
    "a VM apart since a moment": Case("VMApart", {APART: "3600x90"}, "70m"),
    "a VM in another state": Case("VMApart", {ours("vms_oldest_timestamp_seconds", 'state="free"'): "0x90"}, "70m"),
    "no VM apart any more": Case("VMApart", {APART: "0x60 _x30"}, "80m"),
    "two VMs that fit nowhere": Case("VMStuck", {STUCK: "0x5 2x20"}, "17m", {}, "2"),
    "a VM that waited for a moment": Case("VMStuck", {STUCK: "0x5 1x3 0x20"}, "17m"),
    "no VM stuck": Case("VMStuck", {STUCK: "0x20"}, "17m"),
    # reunite.
    "two VMs that wait for a stopped program": Case("ReuniteStopped", {WAITING: "0x5 2x20"}, "17m", {}, "2"),
    "a program that stopped for a moment": Case("ReuniteStopped", {WAITING: "0x5 2x3 0x20"}, "17m"),
    "VMs that wait for another rule": Case(
        "ReuniteStopped", {ours("reunite_waiting_vms", 'rule="Cooldown"'): "2x20"}, "17m"
    ),
}


def rule(name: str) -> dict[str, Any]:
    """Return the alert of that name."""
    (found,) = [each for each in alerts() if each["alert"] == f"KubevirtCoschedule{name}"]
    return found


def expected(case: Case) -> list[dict[str, Any]]:
    """Return the alerts that promtool must see."""
    if case.labels is None:
        return []
    found = rule(case.alert)
    words = {f"{{{{ $labels.{name} }}}}": value for name, value in case.labels.items()}
    words |= {"{{ $value }}": case.value, "{{ $value | humanizeDuration }}": case.value}
    annotations = {}
    for name, text in found["annotations"].items():
        annotations[name] = reduce(lambda so_far, word: so_far.replace(*word), words.items(), text)
    return [{"exp_labels": {**found["labels"], **case.labels}, "exp_annotations": annotations}]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_alert_fires_when_it_should_and_not_otherwise(case: Case, tmp_path: Path) -> None:
    """With its labels and its text, as promtool evaluates it."""
    write_rules(tmp_path)
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": case.at, "alertname": f"KubevirtCoschedule{case.alert}", "exp_alerts": expected(case)}
        ],
    }
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
    code, said = promtool("test", "rules", file)
    assert code == 0, said


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
    assert notes["description"].endswith(".")
    assert found["labels"]["severity"] in {"info", "warning", "critical"}
    assert notes["runbook_url"] == f"docs/operate/runbook.md#{alert.lower()}"
    runbook = (prometheus.MANIFESTS.parent / "docs/operate/runbook.md").read_text(encoding="utf-8")
    assert f"\n## {alert}\n" in runbook


def test_the_alerts_stand_in_the_file_that_is_applied() -> None:
    """With the names that the tests above use."""
    assert ALERTS.is_file()
    assert len(NAMES) == len(set(NAMES)) == 9
