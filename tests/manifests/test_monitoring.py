"""The monitoring component: what it adds to an install, and where it leads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.control_plane.rendering import (
    CERTS,
    DEFAULT,
    INSTALLS,
    NAME,
    at,
    identity,
    installed,
    selects,
    the,
)
from support.drivers import prometheus
from support.drivers.command_lines import command_defaults
from support.objects.metric_table import METRIC_ROWS

from webhook.core.observe.vm_status import State

METRICS: Final = f"{NAME}-metrics"
DASHBOARD: Final = f"{NAME}-dashboard"
ADDED: Final = {
    ("Service", NAME, METRICS),
    ("ServiceMonitor", NAME, NAME),
    ("PrometheusRule", NAME, NAME),
    ("ConfigMap", NAME, DASHBOARD),
}
each_install = pytest.mark.parametrize("install", INSTALLS)


def monitored(install: str) -> Sequence[Mapping[str, Any]]:
    """The objects of an install with the option."""
    return (*installed(install), *installed("monitoring.yaml"))


def test_the_option_adds_its_own_objects() -> None:
    """No port, no right and no other object: without it there is nothing of it."""
    assert set(map(identity, installed("monitoring.yaml"))) == ADDED


@each_install
def test_what_is_added_is_ours_by_labels(install: str) -> None:
    """The release's labels are on it too, and its own that others look for are kept."""
    added = [item["metadata"]["labels"] for item in monitored(install) if identity(item) in ADDED]
    assert {labels["app.kubernetes.io/name"] for labels in added} == {NAME}
    assert the("ConfigMap", monitored(install), DASHBOARD)["metadata"]["labels"]["grafana_dashboard"] == "1"


# It leads to the metrics.


def pods(install: str) -> dict[str, Mapping[str, Any]]:
    """The pod template of each Deployment."""
    items = [item for item in monitored(install) if item["kind"] == "Deployment"]
    return {item["metadata"]["name"]: item["spec"]["template"] for item in items}


@each_install
def test_the_monitor_leads_to_the_health_port_of_every_pod(install: str) -> None:
    """ServiceMonitor, Service, container port, and the port that `serve` tells its metrics on by default."""
    monitor, service = the("ServiceMonitor", monitored(install)), the("Service", monitored(install), METRICS)
    assert selects(monitor["spec"]["selector"], service["metadata"]["labels"])
    assert not selects(monitor["spec"]["selector"], the("Service", monitored(install))["metadata"]["labels"])
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == [service["metadata"]["namespace"]]
    (port,) = service["spec"]["ports"]
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == [port["name"]]
    for template in pods(install).values():
        assert selects({"matchLabels": service["spec"]["selector"]}, template["metadata"]["labels"])
        ports = {each["name"]: each["containerPort"] for each in at("spec.containers.0.ports", template)}
        assert ports[port["targetPort"]] == port["port"]
    assert command_defaults("serve")["--health-listen"] == f":{port['port']}"
    assert pods(install).keys() == {NAME, CERTS} & {key[2] for key in map(identity, monitored(install))}


@each_install
def test_the_network_policies_let_prometheus_in(install: str) -> None:
    """From wherever it runs: of the policies that select a pod one opens the port, and names nobody who may come."""
    port = the("Service", monitored(install), METRICS)["spec"]["ports"][0]["port"]
    policies = [item["spec"] for item in monitored(install) if item["kind"] == "NetworkPolicy"]
    for template in pods(install).values():
        about = [each for each in policies if selects(each["podSelector"], template["metadata"]["labels"])]
        rules = [rule for each in about if "Ingress" in each["policyTypes"] for rule in each.get("ingress", ())]
        opened = [rule for rule in rules if any(each["port"] == port for each in rule.get("ports", ()))]
        assert opened
        assert all("from" not in rule for rule in opened)


# The runbook, which one setting names.

METRIC: Final = re.compile(r"\b(?:kubevirt_coschedule|apiserver|process)[\w:]+")


def rules(objects: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rules of the PrometheusRule."""
    return [rule for group in the("PrometheusRule", objects)["spec"]["groups"] for rule in group["rules"]]


def runbooks(objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Alert -> the address of its section in the runbook."""
    return {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules(objects) if "alert" in rule}


@each_install
def test_each_alert_links_its_section_by_an_absolute_address(install: str) -> None:
    """The address is that of the setting, which the dashboard reads from Prometheus."""
    (setting,) = [rule["labels"]["url"] for rule in rules(monitored(install)) if "url" in rule.get("labels", {})]
    found = runbooks(monitored(install))
    assert setting.startswith("https://")
    assert found == {alert: f"{setting}#{alert.lower()}" for alert in found}
    assert len(found) == len(prometheus.alerts())


# The dashboard.

GROUPED: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^)]+)\)")
OF_OTHERS: Final = {"cluster", "instance", "le", "name", "namespace", "pod"}  # of the API server and of Prometheus


def test_the_links_of_the_dashboard_lead_to_sections_of_the_runbook() -> None:
    """The dashboard links the runbook, and panels link the section of their alert."""
    dashboard = json.loads(prometheus.DASHBOARD.read_text(encoding="utf-8"))
    assert [link["url"] for link in dashboard["links"]] == ["${runbook}"]
    sections = {f"${{runbook}}#{rule['alert'].lower()}" for rule in prometheus.alerts()}
    links = [link["url"] for panel in prometheus.panels() for link in panel.get("links", ())]
    assert len(links) >= 8
    assert set(links) <= sections


def test_each_query_of_the_dashboard_is_about_the_chosen_cluster() -> None:
    """Otherwise it would add up several clusters."""
    for panel in prometheus.panels():
        for target in panel["targets"]:
            query = target["expr"]
            assert query.count('{cluster="$cluster"') == len(METRIC.findall(query)) > 0, query


def test_each_label_of_a_query_is_one_that_metrics_have() -> None:
    """With any other one it would find nothing, and with another state neither."""
    queries = prometheus.queries().values()
    matched = {label for query in queries for label in re.findall(r'(\w+)(?:=~|!~|!=|=)"', query)}
    grouped = {label for query in queries for labels in GROUPED.findall(query) for label in labels.split(", ")}
    assert matched | grouped <= {label for row in METRIC_ROWS for label in row.labels} | OF_OTHERS
    states = {text for query in queries for text in re.findall(r'[{,]state(?:=~|!~|!=|=)"([^"]+)"', query)}
    assert {state for text in states for state in text.split("|")} <= set(State)
    assert states


def test_the_dashboard_is_applied_as_it_stands() -> None:
    """The ConfigMap has the JSON of the file, which Grafana can tell from others by its uid."""
    (text,) = the("ConfigMap", monitored(DEFAULT), DASHBOARD)["data"].values()
    assert json.loads(text) == json.loads(prometheus.DASHBOARD.read_text(encoding="utf-8"))
    assert json.loads(text)["uid"] == NAME


def test_every_query_is_one_that_prometheus_takes(tmp_path: Path) -> None:
    """Each as a rule of its own: its parser sees a bracket that is missing."""
    rules = [
        {"record": "x", "labels": {"query": where}, "expr": query} for where, query in prometheus.queries().items()
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}), encoding="utf-8")
    code, said = prometheus.promtool("check", "rules", file)
    assert code == 0, said
    file.write_text(file.read_text(encoding="utf-8").replace("sum by (cache)", "sum by (cache", 1), encoding="utf-8")
    assert prometheus.promtool("check", "rules", file)[0] != 0
