"""A cluster behind an API server, explain at it, and the whole program in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.drivers.explaining_live import Explain, objects
from support.drivers.status_runs import Ran
from support.fakes.static_api import StaticApi
from support.objects.builders import Object

from webhook import cli


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


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs the program in this process with the given words: ten times as fast as a process of its own."""
    return lambda *words: Ran(cli.main(words), *capsys.readouterr())
