"""The sizes of tests: which one a run takes."""

from __future__ import annotations

from typing import Final

import pytest
from support import sizes

NAME: Final = "STORM_VMS"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TEST_SIZE", NAME):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("column", ["test", "small", "whole"])
def test_a_run_takes_one_column(column: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one where none is asked for."""
    if column != "test":
        monkeypatch.setenv("TEST_SIZE", column)
    assert sizes.size(NAME) == getattr(sizes.SIZES[NAME], column)


def test_one_size_is_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a variable of its name."""
    monkeypatch.setenv(NAME, "7")
    assert sizes.size(NAME) == 7


@pytest.mark.parametrize(("name", "value"), [("TEST_SIZE", "large"), (NAME, "many"), (NAME, "0"), (NAME, "-1")])
def test_a_size_that_there_is_not_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what was given, and what was expected."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=f"^error: {name}: got '{value}', expected "):
        sizes.size(NAME)
