"""Hypothesis' profile for the whole suite (PROPERTY_EXAMPLES: examples for each property), and no skips in CI."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "200")),
    deadline=None,  # a shared machine's pauses are no findings
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # as deadline
)
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001 - the hook's signature
    call: pytest.CallInfo[None],  # noqa: ARG001 - as item
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one: whatever it lacks, CI is where it must be there."""
    report = yield
    if report.skipped and "CI" in os.environ:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
