"""Pods whose owner can't be read: what `serve` counts, shows and logs of them."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from webhook.app.run import record_all
from webhook.core.reasons import Reason
from webhook.page.feed import Decisions
from webhook.telemetry.metrics import Admissions
from webhook.telemetry.record import DEBUG, INFO, AdmissionRecord

BEGIN: Final = datetime(2026, 1, 2, tzinfo=UTC)
UNREAD: Final = Reason.OWNER_LOOKUP_FAILED.code


def record(reason: str, level: str) -> AdmissionRecord:
    """The record of a call that leaves its pod unchanged."""
    told: dict[str, Any] = {"entry": "virt-launcher", "uid": "u", "decision": "unchanged", "because": "429"}
    return AdmissionRecord(time=BEGIN, level=level, message="admission", reason=reason, duration_us=1, **told)


@pytest.mark.parametrize(("reason", "lines"), [(UNREAD, 2), (Reason.OWNER_NOT_FOUND.code, 0)])
def test_the_log_has_a_line_a_minute(reason: str, lines: int, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    """A thousand calls in 61 s: two warnings if the API server fails, none if it does not have the owner."""
    times = iter(BEGIN + timedelta(seconds=61 * number / 999) for number in range(1000))
    registry, decisions = CollectorRegistry(), Decisions()
    caplog.set_level(logging.INFO, "webhook")
    note = record_all(Admissions(registry), decisions, lambda: next(times))
    for _ in range(1000):
        note(record(reason, DEBUG))
    assert [each.message for each in caplog.records] == ["the owner of a pod was not read"] * lines
    assert capfd.readouterr().err == ""
    assert decisions.total == 0
    labels = {"entry": "virt-launcher", "decision": "unchanged", "reason": reason}
    assert registry.get_sample_value("kubevirt_coschedule_admissions_total", labels) == 1000


def test_the_page_and_the_log_have_each_other_call(caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    """A line of JSON, and a row."""
    decisions = Decisions()
    caplog.set_level(logging.INFO, "webhook")
    record_all(Admissions(CollectorRegistry()), decisions)(record("NoClaims", INFO))
    assert decisions.total == 1
    assert '"reason":"NoClaims"' in capfd.readouterr().err
