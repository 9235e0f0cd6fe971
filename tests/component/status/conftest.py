"""VMs behind an API server, and status at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.drivers.status_runs import Object, Status, objects
from support.fakes.static_api import StaticApi


@pytest.fixture
def stored() -> list[Object]:
    """The VMs behind the API server."""
    return objects()


@pytest.fixture
def status(api: StaticApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Status:
    """Runs status against it."""
    return Status(api, tmp_path, capsys)
