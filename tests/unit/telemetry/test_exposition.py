"""All metrics: names and units by Prometheus' rules, labels with few values."""

from __future__ import annotations

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from support.objects.metric_table import METRIC_ROWS, MetricRow

from webhook.component_base.health import PREFIX
from webhook.kube.metrics import NAMED_VMS_MAX
from webhook.telemetry.metrics import Admissions

UNBOUNDED = ("namespace", "vm_namespace", "name", "pod", "node", "vm", "volume", "claim", "uid", "path")

each_family = pytest.mark.parametrize("family", METRIC_ROWS, ids=[family.title for family in METRIC_ROWS])


@each_family
def test_a_metric_is_named_by_prometheus_rules(family: MetricRow) -> None:
    """Snake case with the prefix; `_total` for counters only; times in seconds."""
    assert re.fullmatch(rf"{PREFIX}[a-z]+(_[a-z]+)*", family.title)
    assert family.title.endswith("_total") == (family.kind == "counter")
    if re.search("duration|timestamp", family.title):
        assert family.title.endswith("_seconds")


@each_family
def test_a_metric_says_what_it_is_in_one_sentence(family: MetricRow) -> None:
    """/metrics and the table in docs need it: no line break, no bar, and a full stop."""
    assert family.help.endswith(".")
    assert not re.search(r"[\n|]", family.help)
    assert family.help[0].isupper() or family.help[0] == "1"


@each_family
def test_no_label_is_something_that_anybody_can_name(family: MetricRow) -> None:
    """The name of a VM or a node as a label would make a series for each of them. One metric has a limit instead."""
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", label) for label in family.labels)
    if family.title == f"{PREFIX}vm_in_trouble_timestamp_seconds":
        assert f"At most {NAMED_VMS_MAX} VMs" in family.help
        return
    assert not set(family.labels) & set(UNBOUNDED)


def test_a_family_without_values_has_its_help_text() -> None:
    """A user who looks for a metric finds its help text even before its first event."""
    registry = CollectorRegistry()
    Admissions(registry)
    described = {row.title: row for row in METRIC_ROWS}
    lines = generate_latest(registry).decode().splitlines()
    for title in (f"{PREFIX}admissions_total", f"{PREFIX}admission_duration_seconds"):
        assert f"# HELP {title} {described[title].help}" in lines
        assert f"# TYPE {title} {described[title].kind}" in lines
