"""The log of this process, set up as in `serve`, and its lines on standard error."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from webhook.telemetry.record import LOGGER


class Logged:
    """The lines of this process."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def text(self) -> list[str]:
        """Return the lines since the last call."""
        return self._capture.readouterr().err.splitlines()

    def lines(self) -> list[dict[str, Any]]:
        """Return the same lines, each parsed as JSON."""
        return [json.loads(line) for line in self._capture.readouterr().err.removesuffix("\n").split("\n")]


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Restore logging at the end, whatever changes it."""
    root = logging.getLogger()
    before, levels = root.handlers[:], (root.level, LOGGER.level)
    root.handlers[:] = []  # pytest's own: they must not be closed
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(levels[0])
        LOGGER.setLevel(levels[1])


@contextmanager
def logging_here(capture: pytest.CaptureFixture[str]) -> Iterator[Logged]:
    """Set up the log of this process until the end of the context."""
    with logging_as_before():
        yield Logged(capture)
