"""The metrics of `reunite`, beside those of its caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from webhook.core.reunite.not_yet import Rule
from webhook.reunite.reporter import Reporter
from webhook.telemetry.exposition import PREFIX

_PREFIX: Final = f"{PREFIX}reunite_"


def reunite_families(reporter: Reporter, *, dry_run: bool) -> Iterator[Metric]:
    """Yield the counts of migrations, the VMs that wait by rule, and whether the program writes."""
    migrations = CounterMetricFamily(
        f"{_PREFIX}migrations_total",
        "Migrations by what came of them: created, refused, deleted, succeeded or failed.",
        labels=["result"],
    )
    for result, count in reporter.migrations.items():
        migrations.add_metric([result], count)
    yield migrations
    restarts = CounterMetricFamily(
        f"{_PREFIX}restarts_total",
        "Stuck VMs by what came of the deletion of their pod: done or refused.",
        labels=["result"],
    )
    for result, count in reporter.restarts.items():
        restarts.add_metric([result], count)
    yield restarts
    waiting = GaugeMetricFamily(
        f"{_PREFIX}waiting_vms",
        "VMs that are apart and not migrated now, or stuck and not restarted, by the first rule that says no.",
        labels=["rule"],
    )
    for rule in Rule:
        waiting.add_metric([rule.code], reporter.waiting[rule])
    yield waiting
    yield GaugeMetricFamily(f"{_PREFIX}dry_run", "1 while the program only says what it would do.", value=dry_run)
