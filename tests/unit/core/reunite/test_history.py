"""Times as the API server writes them, and what is read of a VM's migrations."""

import os
import time

import pytest

from webhook.core.reunite.history import unix_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("1970-01-01T00:00:01Z", 1.0, id="as the API server writes it"),
        pytest.param("1970-01-01T01:00:01+01:00", 1.0, id="with an offset"),
        pytest.param("1970-01-01T00:00:01.5Z", 1.5, id="with a fraction"),
        pytest.param("1970-01-01T00:00:01", 1.0, id="without a zone: UTC"),
        pytest.param("yesterday", 0.0, id="no time"),
        pytest.param("", 0.0, id="nothing"),
    ],
)
def test_a_time_does_not_depend_on_the_zone_of_the_machine(
    text: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zone of the process is another one than UTC."""
    monkeypatch.setitem(os.environ, "TZ", "America/New_York")
    time.tzset()
    try:
        assert unix_seconds(text) == seconds
    finally:
        monkeypatch.undo()
        time.tzset()
