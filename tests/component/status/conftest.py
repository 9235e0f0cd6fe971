"""VMs behind an API server, and status at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.status_runs import Status, objects
from support.fakes.static_api import StaticApi

from webhook.status.settings import STATUS


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the environment variables of the user who runs the tests: they can name settings and a cluster."""
    remove_settings(monkeypatch, STATUS, *CLUSTER)


@pytest.fixture
def api() -> Iterator[StaticApi]:
    """The VMs behind an API server."""
    with StaticApi(objects()) as server:
        yield server


@pytest.fixture
def status(api: StaticApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Status:
    """Runs status against it."""
    return Status(api, tmp_path, capsys)
