"""Fixtures of the tests of the EventRecorder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.drivers.logging_here import Logged, logging_here
from support.fakes.api_server import Cluster
from support.fakes.event_writes import Writing


@pytest.fixture
def writing() -> Writing:
    """The API server's part that takes Events."""
    return Writing()


@pytest.fixture
def cluster(writing: Writing) -> Cluster:
    """A cluster without objects; a test module that needs objects has a fixture of its own."""
    return writing.cluster


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Logged]:
    """What this process logs."""
    with logging_here(capsys) as found:
        yield found
