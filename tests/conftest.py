"""Hypothesis' profile for the whole suite (PROPERTY_EXAMPLES: examples for each property), loops, no skips in CI."""

import asyncio
import os
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Final

import pytest
from controlplane.build import NotBuilt
from coverage import Coverage
from hypothesis import HealthCheck, settings
from support.sizes import size
from xdist.workermanage import NodeManager

from webhook.settings import ENVIRONMENT_PREFIX

# The settings and the cluster of the user who runs the tests are none of theirs. Most users' Python has buffers.
for _name in list(os.environ):
    if _name.startswith(f"{ENVIRONMENT_PREFIX}_") or _name in (
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "PYTHONUNBUFFERED",
    ):
        del os.environ[_name]

settings.register_profile(
    "suite",
    max_examples=size("PROPERTY_EXAMPLES"),
    deadline=None,  # a shared machine's pauses are no findings
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # as deadline
)
settings.load_profile("suite")

# A test process writes its coverage when it ends. xdist kills a process that takes longer, and its coverage is lost.
NodeManager.EXIT_TIMEOUT = 300

# A job in the background begins with SIGINT ignored, and so would every program that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

LEFT_OUT: Final = (
    "Left out: tests of built programs and models of clusters (make e2e), and proofs by number (make soak)"
)
_LISTENING: Final = (
    "test_serving",
    "test_limits",
    "test_drain",
    "test_tls",
    "test_reload",
    "test_callers",
    "test_handshakes",
)


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's signature
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests of the listener run on asyncio's loop, and on the one that `serve` takes: their transports differ."""
    loops = {"asyncio": asyncio.new_event_loop}
    with suppress(ImportError):
        if item.path.stem in _LISTENING:
            import uvloop  # noqa: PLC0415 - an extra

            loops["uvloop"] = uvloop.new_event_loop
    return loops


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that searches is not measured: that doubles its time, and what must be reached, an example reaches."""
    searches = any(map(item.get_closest_marker, ("hypothesis", "slow")))
    measured = Coverage.current() if searches else None
    if not measured:
        return (yield)
    measured.stop()
    try:
        return (yield)
    finally:
        measured.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that asks for a program which nobody has built is skipped, with what to do about it.

    In CI a skipped test is a failed one: whatever it lacks, CI is where it must be there.
    """
    report = yield
    if call.excinfo and isinstance(call.excinfo.value, NotBuilt):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {call.excinfo.value}")
    if report.skipped and "CI" in os.environ:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A run without paths says which tests it has left out (`testpaths` of pyproject.toml)."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        terminalreporter.write_line(LEFT_OUT)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of a run says how many tests had no browser, and what to install."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = [str(each.longrepr[2]) for each in reporter.stats.get("skipped", ())] if reporter else []
    if without := [reason for reason in skipped if "no Chromium here" in reason]:
        reporter.write_line(f"{len(without)} tests of the page did not run: {without[0].removeprefix('Skipped: ')}")
