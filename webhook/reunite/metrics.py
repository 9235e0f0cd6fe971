"""The metrics of `reunite`, beside those of its caches. /metrics and the table in docs are made from them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import unique

from prometheus_client.metrics_core import Metric

from webhook.core.reunite.not_yet import Rule
from webhook.reunite.reporter import Reporter
from webhook.telemetry.exposition import MetricFamily


@unique
class ReuniteFamily(MetricFamily):
    """Each metric of `reunite`."""

    MIGRATIONS = (
        "reunite_migrations_total",
        "counter",
        ("result",),
        "Migrations by what came of them: created, refused, deleted, succeeded or failed.",
    )
    MEMORY = (
        "reunite_migrated_memory_bytes_total",
        "counter",
        (),
        "Guest memory of the VMs whose migration succeeded: a lower bound of the bytes that were copied.",
    )
    RESTARTS = (
        "reunite_restarts_total",
        "counter",
        ("result",),
        "Stuck VMs by what came of the deletion of their pod: done or refused.",
    )
    WAITING = (
        "reunite_waiting_vms",
        "gauge",
        ("rule",),
        "VMs that are apart and not migrated now, or stuck and not restarted, by the first rule that says no.",
    )
    DRY_RUN = "reunite_dry_run", "gauge", (), "1 while the program only says what it would do."


def reunite_families(reporter: Reporter, *, dry_run: bool) -> Iterator[Metric]:
    """Yield the counts of migrations, the VMs that wait by rule, and whether the program writes."""
    yield ReuniteFamily.MIGRATIONS.metric({(result,): count for result, count in reporter.migrations.items()})
    yield ReuniteFamily.MEMORY.metric({(): reporter.migrated_memory_bytes})
    yield ReuniteFamily.RESTARTS.metric({(result,): count for result, count in reporter.restarts.items()})
    yield ReuniteFamily.WAITING.metric({(rule.code,): reporter.waiting[rule] for rule in Rule})
    yield ReuniteFamily.DRY_RUN.metric({(): dry_run})
