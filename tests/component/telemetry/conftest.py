"""What the tests of the log share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.drivers.logging_here import Logged, logging_here


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[Logged]:
    """The log of this process."""
    with logging_here(capsys) as found:
        yield found
