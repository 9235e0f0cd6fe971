"""What Prometheus makes of metrics, alerts and queries, by promtool: Prometheus' own parser, linter and evaluator."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import yaml
from controlplane import build
from support.control_plane.rendering import NAME, ROOT
from support.waits import MAX_WAIT_SECONDS

_FOLDER: Final = ROOT / "charts" / NAME / "files" / "monitoring"
ALERTS: Final = _FOLDER / "prometheus-rule.yaml"
DASHBOARD: Final = _FOLDER / "kubevirt-coschedule.json"

RUNBOOK: Final = ROOT / "docs" / "operate" / "runbook.md"

# What Grafana puts in.
_GRAFANA: Final = {"$__rate_interval": "5m", "$__range": "5m", "$cluster": "", "$namespace": ".*"}
_NAME: Final = re.compile(r"\b(?:kubevirt_coschedule|apiserver|process)_\w+")


def promtool(*words: str | Path, standard_input: bytes = b"") -> tuple[int, str]:
    """Return the exit code, and all that promtool prints.

    Raises:
        NotBuilt: there is no promtool.
    """
    asked = subprocess.run(  # noqa: S603 - a program that we have built
        [build.promtool(), *words],
        input=standard_input,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=MAX_WAIT_SECONDS,
    )
    return asked.returncode, asked.stdout.decode()


def against(tests: Mapping[str, Mapping[str, Any]], directory: Path, every: str = "1m") -> dict[str, str]:
    """Return what promtool says against each test of the rules in this directory; nothing about one that passes.

    One process runs all tests, and evaluates the rules `every` so often. Each is a file of its own, because promtool
    reports by file.
    """
    files = {name: directory / f"test-{number}.yaml" for number, name in enumerate(tests)}
    for name, test in tests.items():
        rules = {"rule_files": ["rules.yaml"], "evaluation_interval": every, "tests": [test]}
        files[name].write_text(json.dumps(rules), encoding="utf-8")  # YAML, too
    report = directory / "report.xml"
    code, said = promtool("test", "rules", f"--junit={report}", *files.values())
    suites = {suite.get("name"): suite for suite in ET.parse(report).getroot().iter("testsuite")}  # noqa: S314 - promtool's own
    found = {name: _failures(suites[str(file)]) for name, file in files.items()}
    assert (code == 0) == (not any(found.values())), said
    return found


def _failures(suite: ET.Element) -> str:
    assert list(suite.iter("testcase")), "promtool ran no test"
    return "\n".join("".join(each.itertext()) or "failed" for kind in ("failure", "error") for each in suite.iter(kind))


def alerts() -> list[dict[str, Any]]:
    """The alerts of the monitoring component."""
    return [rule for rule in _rules() if "alert" in rule]


def records() -> dict[str, str]:
    """The name of each recording rule -> its query, in the order in which Prometheus evaluates them."""
    return {rule["record"]: rule["expr"] for rule in _rules() if "record" in rule}


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def write_rules(directory: Path) -> Path:
    """The PrometheusRule's groups as a file of Prometheus'."""
    file = directory / "rules.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["spec"]), encoding="utf-8")
    return file


def panels() -> list[dict[str, Any]]:
    """The dashboard's panels that show something."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def queries() -> dict[str, str]:
    """Where a query is -> the query, as Grafana or the operator sends it."""
    found = {f"alert {rule['alert']}": rule["expr"] for rule in alerts()}
    found |= {f"record {name}": query for name, query in records().items()}
    for panel in panels():
        for target in panel["targets"]:
            found[f"panel {panel['title']}, {target['refId']}"] = _filled(target["expr"])
    return found


def metrics_in(query: str) -> set[str]:
    """The metrics that a query asks for, also through recording rules."""
    for name, recorded in reversed(records().items()):
        query = query.replace(name, recorded)
    return set(_NAME.findall(query))


def asked_for() -> set[str]:
    """The metrics that any query asks for."""
    return set().union(*map(metrics_in, queries().values()))


def _filled(query: str) -> str:
    for variable, text in _GRAFANA.items():
        query = query.replace(variable, text)
    assert "$" not in query, f"a variable that a test does not know: {query}"
    return query
