"""The table of metrics: names and units by Prometheus' rules, labels that stay few, and histograms that add up."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from webhook.telemetry.exposition import PREFIX, Family, Histogram

BOUNDS = (0.001, 0.01, 0.1)
UNBOUNDED = ("namespace", "name", "pod", "node", "vm", "volume", "claim", "uid", "path")

each_family = pytest.mark.parametrize("family", Family, ids=[family.title for family in Family])


@each_family
def test_a_metric_is_named_by_prometheus_rules(family: Family) -> None:
    """Snake case with our prefix; `_total` where it counts, and nowhere else; a time is in seconds."""
    assert re.fullmatch(rf"{PREFIX}[a-z]+(_[a-z]+)*", family.title)
    assert family.title.endswith("_total") == (family.kind == "counter")
    if re.search("duration|timestamp", family.title):
        assert family.title.endswith("_seconds")


@each_family
def test_a_metric_says_what_it_is_in_one_sentence(family: Family) -> None:
    """For /metrics and for the README's table: no line break, no bar, and a full stop."""
    assert family.words.endswith(".")
    assert not re.search(r"[\n|]", family.words)
    assert family.words[0].isupper() or family.words[0] == "1"


@each_family
def test_no_label_is_something_that_anybody_can_name(family: Family) -> None:
    """A VM's or a node's name as a label would be a series for each."""
    assert not set(family.labels) & set(UNBOUNDED)
    assert all(re.fullmatch("[a-z]+", label) for label in family.labels)


@given(st.lists(st.floats(0, 1)))
def test_a_histogram_counts_each_value_once(values: list[float]) -> None:
    """A bucket holds all that are at most its bound: the last holds all, and none holds more than the next."""
    histogram = Histogram(BOUNDS)
    for value in values:
        histogram.observe(value)
    buckets = dict(histogram.buckets())
    assert buckets == {
        **{f"{bound:g}": sum(value <= bound for value in values) for bound in BOUNDS},
        "+Inf": len(values),
    }
    assert histogram.sum == pytest.approx(sum(values))


def test_a_family_without_values_is_told_all_the_same() -> None:
    """Whoever looks for a metric finds its words, though nothing has happened yet."""

    class Source:
        def collect(self) -> list[object]:
            return [Family.ADMISSIONS.metric({}), Family.DURATION.histograms([])]

    registry = CollectorRegistry()
    registry.register(Source())  # type: ignore[arg-type]
    lines = generate_latest(registry).decode().splitlines()
    assert lines == [
        f"# HELP {Family.ADMISSIONS.title} {Family.ADMISSIONS.words}",
        f"# TYPE {Family.ADMISSIONS.title} counter",
        f"# HELP {Family.DURATION.title} {Family.DURATION.words}",
        f"# TYPE {Family.DURATION.title} histogram",
    ]
