"""How long a call may take, from the `?timeout=` that came with it."""

from __future__ import annotations

from time import process_time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.serving.routes import DEFAULT_TIMEOUT_SECONDS, MARGIN, MAX_TIMEOUT_SECONDS, budget_seconds

MOST_SECONDS: Final = 0.2  # it takes 0.5 ms
TIMEOUTS: Final = {
    "timeout=3s": 3.0,
    "timeout=1.5s": 1.5,
    "timeout=.5s": 0.5,
    "timeout=500ms": 0.5,
    "timeout=250000%C2%B5s": 0.25,
    "timeout=2000000000ns": 2.0,
    "timeout=1s500ms": 1.5,
    "timeout=31s": MAX_TIMEOUT_SECONDS,
    "timeout=1h": MAX_TIMEOUT_SECONDS,
    f"timeout={'9' * 5000}s": MAX_TIMEOUT_SECONDS,
    "dryRun=All&timeout=3s": 3.0,
    "timeout=3s&timeout=9s": 3.0,
    "": DEFAULT_TIMEOUT_SECONDS,
    "timeout=": DEFAULT_TIMEOUT_SECONDS,
    "timeout=0s": DEFAULT_TIMEOUT_SECONDS,
    "timeout=-3s": DEFAULT_TIMEOUT_SECONDS,
    "timeout=3": DEFAULT_TIMEOUT_SECONDS,
    "timeout=3%20s": DEFAULT_TIMEOUT_SECONDS,
    "timeout=3s%0A": DEFAULT_TIMEOUT_SECONDS,
    "timeout=nan": DEFAULT_TIMEOUT_SECONDS,
    "timeout=%D9%A3s": DEFAULT_TIMEOUT_SECONDS,  # an Arabic-Indic three
    "timeout=%FF": DEFAULT_TIMEOUT_SECONDS,
}


@pytest.mark.parametrize(("query", "timeout_seconds"), TIMEOUTS.items(), ids=lambda value: ascii(value)[:40])
def test_a_timeout_is_read_as_go_writes_it(query: str, timeout_seconds: float) -> None:
    """A fifth is kept back; what can't be read, or gives no time, is the API's default, and too much is its maximum."""
    assert budget_seconds(query) == pytest.approx(timeout_seconds * (1 - MARGIN))


@pytest.mark.parametrize(
    "text", [f"{'11s' * 24}x", f"{'.1h1.1m' * 1000}x", "1" * 7000, "1." * 3500], ids=lambda text: text[:12]
)
def test_a_wrong_text_takes_no_time(text: str) -> None:
    """Anybody who can connect may send it, and meanwhile no other call is answered."""
    began = process_time()
    assert budget_seconds(f"timeout={text}") == pytest.approx(DEFAULT_TIMEOUT_SECONDS * (1 - MARGIN))
    assert process_time() - began < MOST_SECONDS


@given(st.text())
def test_no_query_leaves_a_call_without_time(query: str) -> None:
    """Whatever is written there, there is some time, and an end to it."""
    assert 0 < budget_seconds(query) < MAX_TIMEOUT_SECONDS
    assert 0 < budget_seconds(f"timeout={query}") < MAX_TIMEOUT_SECONDS
