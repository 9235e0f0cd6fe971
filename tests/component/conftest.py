"""A cluster behind an API server, and explain at it: for all that ask explain about a live cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.drivers.environment import CLUSTER, remove_settings
from support.drivers.explaining_live import Explain, objects
from support.fakes.static_api import StaticApi
from support.objects.builders import Object

from webhook.explain.settings import EXPLAIN


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings and the cluster of the user who runs the tests."""
    remove_settings(monkeypatch, EXPLAIN, *CLUSTER)


@pytest.fixture
def stored() -> list[Object]:
    """The objects of the cluster; a module or a folder that needs others has a fixture of its own."""
    return objects()


@pytest.fixture
def api(stored: list[Object]) -> Iterator[StaticApi]:
    """The cluster behind an API server."""
    with StaticApi(stored) as server:
        yield server


@pytest.fixture
def explain(api: StaticApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    """Runs explain against it."""
    return Explain(api, tmp_path, capsys)
