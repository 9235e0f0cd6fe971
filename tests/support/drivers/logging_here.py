"""The log of this process, set up as in `serve`, and its lines on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from webhook.telemetry.record import LogLevel, written_log


class Logged:
    """The lines of this process."""

    def __init__(self, capture: pytest.CaptureFixture[str], stack: ExitStack) -> None:
        self._capture, self._stack = capture, stack

    def start(self, level: LogLevel) -> None:
        """Log at this level until the end of the context."""
        self._stack.enter_context(written_log(level))

    def text(self) -> list[str]:
        """Return the lines since the last call."""
        return self._capture.readouterr().err.splitlines()

    def lines(self) -> list[dict[str, Any]]:
        """Return the same lines, each parsed as JSON."""
        return [json.loads(line) for line in self._capture.readouterr().err.removesuffix("\n").split("\n")]


@contextmanager
def logging_here(capture: pytest.CaptureFixture[str]) -> Iterator[Logged]:
    """The log of this process, which a test starts."""
    with ExitStack() as stack:
        yield Logged(capture, stack)
