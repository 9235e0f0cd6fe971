"""Which lines are written that anybody can cause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webhook.component_base.log_line import OnceAMinute

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "due"),
    [(0, False), (59, False), (60, True), (-1, True), (-3600, True)],
    ids=["at once", "just", "a minute later", "the clock went back", "by an hour"],
)
def test_a_line_is_written_once_a_minute(seconds: int, due: bool) -> None:  # noqa: FBT001 - a row's
    """A clock that was set back keeps no line from being written."""
    times = [NOON, NOON + timedelta(seconds=seconds)]
    lines = OnceAMinute(lambda: times.pop(0))
    assert [lines.is_due("a"), lines.is_due("a")] == [True, due]
    assert lines.so_far["a"] == 2
