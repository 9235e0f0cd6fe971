"""What is counted of calls and caches, and the samples in /metrics."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from support.drivers.scraping import OPENMETRICS, PROMETHEUS, Scraped, told
from support.objects import records
from support.objects.metric_table import METRIC_ROWS, MetricRow

from webhook import __version__
from webhook.component_base.health import PREFIX, expose, new_registry
from webhook.core.view import Kind
from webhook.kube.cache.caches import CacheState, LookupCounts
from webhook.kube.informer.connection import Cause
from webhook.kube.metrics import NAMED_VMS_MAX, CacheMetrics
from webhook.telemetry.metrics import Admissions, process_families
from webhook.telemetry.record import AdmissionRecord

RECORD: Final = replace(records.RECORD, duration_us=300)

# Calls.


def noted(*records: AdmissionRecord) -> Scraped:
    """Return the samples after these calls."""
    registry = new_registry()
    admissions = Admissions(registry)
    for record in records:
        admissions.count(record)
    return Scraped.of(*expose(registry, ""))


def test_an_admission_is_counted_by_entry_decision_and_reason() -> None:
    """Each of the three is a label, and each call counts once."""
    found = noted(RECORD, RECORD, replace(RECORD, decision="unchanged", reason="NoClaims"))
    name = "kubevirt_coschedule_admissions_total"
    assert found.value(name, entry="virt-launcher", decision="required", reason="ShareManagerPod") == 2
    assert found.value(name, entry="virt-launcher", decision="unchanged", reason="NoClaims") == 1
    assert found.value(name) == 3


BOUNDS: Final = {
    "0.25 ms": (250, "0.00025"),
    "0.3 ms": (300, "0.0005"),
    "2.9 s": (2_900_000, "3"),
    "4 s": (4_000_000, "+Inf"),
}


@pytest.mark.parametrize(("duration_us", "bound"), BOUNDS.values(), ids=BOUNDS)
def test_a_duration_has_buckets_from_a_quarter_of_a_millisecond_to_three_seconds(duration_us: int, bound: str) -> None:
    """In the smallest bucket that it fits, and in none below."""
    found = noted(replace(RECORD, duration_us=duration_us))
    buckets = [
        each
        for each in found.samples
        if each.name == "kubevirt_coschedule_admission_duration_seconds_bucket" and each.value
    ]
    assert min(float(each.labels["le"]) for each in buckets) == float(bound)
    assert found.value("kubevirt_coschedule_admission_duration_seconds_sum") == pytest.approx(duration_us / 1e6)


def test_what_was_waited_for_is_a_stage_of_its_own() -> None:
    """The rest of the time is deciding; a call without reads did not wait."""
    found = noted(RECORD, replace(RECORD, duration_us=5_000, reads=3, read_us=4_500))
    stage = "kubevirt_coschedule_admission_stage_duration_seconds"
    assert found.value(f"{stage}_count", entry="virt-launcher", stage="decide") == 2
    assert found.value(f"{stage}_sum", entry="virt-launcher", stage="decide") == pytest.approx(0.0008)
    assert found.value(f"{stage}_count", entry="virt-launcher", stage="read") == 1
    assert found.value(f"{stage}_sum", entry="virt-launcher", stage="read") == pytest.approx(0.0045)
    assert found.value("kubevirt_coschedule_admission_reads_sum", entry="virt-launcher") == 3
    assert found.value("kubevirt_coschedule_admission_reads_bucket", entry="virt-launcher", le="0.0") == 1


# Caches.


def state(**fields: Any) -> CacheState:
    """Return a cache that works, except for these fields."""
    well = {"title": "nodes", "fresh": True, "detail": "", "objects": 3, "heard_seconds": 5.0, "unreadable": 0}
    return CacheState(**{**well, "causes": Counter(), **fields})


def test_a_cache_has_samples_by_its_name() -> None:
    """Whether it is up to date, its objects, the time of its last event, and its interruptions."""
    states = [state(causes=Counter({Cause.EXPIRED: 2}), unreadable=1), state(title="pods", fresh=False, objects=0)]
    before = datetime.now(UTC).timestamp()
    found = told(CacheMetrics(lambda: states, {}).families)
    assert [found.value("kubevirt_coschedule_cache_fresh", cache=name) for name in ("nodes", "pods")] == [1, 0]
    assert [found.value("kubevirt_coschedule_cache_objects", cache=name) for name in ("nodes", "pods")] == [3, 0]
    assert found.value("kubevirt_coschedule_cache_last_event_timestamp_seconds", cache="nodes") == pytest.approx(
        before - 5, abs=2
    )
    assert found.value("kubevirt_coschedule_cache_interruptions_total", cache="nodes", cause="expired") == 2
    assert [
        found.value("kubevirt_coschedule_cache_unreadable_objects_total", cache=name) for name in ("nodes", "pods")
    ] == [1, 0]


def test_a_lookup_is_counted_by_kind_source_and_outcome() -> None:
    """A lookup that never happened has no sample; late reads have one from the start."""
    counts = {kind: LookupCounts() for kind in Kind}
    counts[Kind.NODE].hit, counts[Kind.NODE].late = 7, 1
    counts[Kind.SHARE_MANAGER].failed = 2
    found = told(CacheMetrics(list, counts).families)
    assert found.value("kubevirt_coschedule_lookups_total", kind="Node", source="cache", outcome="hit") == 7
    assert (
        found.value("kubevirt_coschedule_lookups_total", kind="ShareManager", source="request", outcome="failed") == 2
    )
    assert found.value("kubevirt_coschedule_lookups_total") == 9
    assert (
        found.value("kubevirt_coschedule_late_reads_total", kind="Node")
        == found.value("kubevirt_coschedule_late_reads_total")
        == 1
    )


# All.


def test_the_program_and_its_process_have_metrics() -> None:
    """Its version, and its memory, CPU and files."""
    found = told(lambda: process_families({}))
    assert found.value("kubevirt_coschedule_build_info", version=__version__) == 1
    assert found.value("process_resident_memory_bytes") > 1e6
    assert {"process_cpu_seconds_total", "process_open_fds", "process_start_time_seconds"} <= found.names


ACCEPTED: Final = {
    "nothing": ("", False),
    "anything": ("*/*", False),
    "text": ("text/plain;version=0.0.4", False),
    "OpenMetrics": ("application/openmetrics-text", True),
    "OpenMetrics of some version": ("application/openmetrics-text; version=1.0.0; charset=utf-8", True),
    "OpenMetrics of a version that is none": ("application/openmetrics-text;version=x", False),
    "as Prometheus asks": (PROMETHEUS, True),
    "something else": ("application/json", False),
    "no media type at all": (",;=,", False),
}


@pytest.mark.parametrize(("accept", "is_openmetrics"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_caller_that_asks_for_openmetrics_gets_it(accept: str, *, is_openmetrics: bool) -> None:
    """All other callers get the text format. Both have the same values, in their own syntax."""
    registry = new_registry()
    Admissions(registry).count(RECORD)
    content_type, body = expose(registry, accept)
    assert content_type.startswith(OPENMETRICS if is_openmetrics else "text/plain; version=0.0.4")
    assert body.endswith(b"# EOF\n") == is_openmetrics
    assert Scraped.of(content_type, body).value("kubevirt_coschedule_admissions_total", reason="ShareManagerPod") == 1


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


def test_a_server_without_calls_has_samples_of_zero() -> None:
    """A server without calls has samples of 0, because Prometheus computes no rate of an absent sample."""
    found = noted()
    for entry in ("virt-launcher", "share-manager"):
        assert found.value("kubevirt_coschedule_admission_duration_seconds_count", entry=entry) == 0
    assert found.value("kubevirt_coschedule_refused_calls_total", status="400") == 0
    assert not found.has("kubevirt_coschedule_admissions_total")


def test_a_cache_that_never_heard_anything_has_no_last_time() -> None:
    """A time of 0 would be 1970."""
    found = told(CacheMetrics(lambda: [state(fresh=False, heard_seconds=None)], {}).families)
    assert not found.has("kubevirt_coschedule_cache_last_event_timestamp_seconds")
    assert found.value("kubevirt_coschedule_cache_fresh", cache="nodes") == 0


def test_a_family_without_values_has_its_help_text() -> None:
    """A user who looks for a metric finds its help text even before its first event."""
    registry = CollectorRegistry()
    Admissions(registry)
    described = {row.title: row for row in METRIC_ROWS}
    lines = generate_latest(registry).decode().splitlines()
    for title in (f"{PREFIX}admissions_total", f"{PREFIX}admission_duration_seconds"):
        assert f"# HELP {title} {described[title].help}" in lines
        assert f"# TYPE {title} {described[title].kind}" in lines
