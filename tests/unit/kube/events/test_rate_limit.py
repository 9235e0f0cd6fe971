"""How fast may be sent, for how long a server that fails is left alone, and what is remembered for how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.kube.events.rate_limit import RateLimiter, TTLCache


def limiter(per_second: float = 10, burst: int = 3, chance: float = 1.0) -> RateLimiter:
    """A RateLimiter with this jitter."""
    return RateLimiter(per_second, burst, random=lambda: chance)


def test_a_burst_goes_at_once_and_the_rest_evenly() -> None:
    """A sender that waits as long as `wait` returns sends 10 a second after the first 3."""
    found, now, sent = limiter(), 1000.0, []
    for _ in range(7):
        now += found.wait(now)
        sent.append(now - 1000)
    assert sent == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3, 0.4])


def test_what_was_not_sent_makes_room_up_to_a_burst() -> None:
    """After a long rest it is three again, and no more."""
    found = limiter()
    for _ in range(3):
        found.wait(1000)
    assert [found.wait(2000) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


@given(st.lists(st.floats(0, 5), max_size=60), st.integers(1, 5), st.sampled_from([0.5, 3.0, 10.0]))
def test_no_more_than_is_allowed_is_ever_sent(pauses: list[float], burst: int, per_second: float) -> None:
    """In any stretch of time: a burst, and so many a second."""
    found, now, sent = limiter(per_second, burst), 50.0, []
    for pause in pauses:
        now += pause
        now += found.wait(now)
        sent.append(now)
    for first, start in enumerate(sent):
        for last in range(first, len(sent)):
            assert last - first + 1 <= burst + (sent[last] - start) * per_second + 1e-6


def test_a_server_that_fails_is_left_alone_ever_longer_up_to_a_minute() -> None:
    """And is asked as before as soon as it answers."""
    found, waits = limiter(burst=100), []
    for _ in range(8):
        found.failed(1000)
        waits.append(found.wait(1000))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    found.succeeded()
    assert found.wait(1000) == 0
    found.failed(1000)
    assert found.wait(1000) == 1


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_the_back_off_is_jittered(chance: float, seconds: float) -> None:
    """Half to the whole of it: replicas come back one by one."""
    found = limiter(chance=chance)
    found.failed(1000)
    assert found.wait(1000) == seconds


@pytest.mark.parametrize(("asked", "seconds"), [(0, 1), (7, 7), (3600, 60)])
def test_retry_after_holds_back_the_next_event(asked: float, seconds: float) -> None:
    """The next Event waits for the Retry-After, too."""
    found = limiter()
    found.failed(1000, asked)
    assert found.wait(1000) == seconds


def test_what_happened_is_known_for_a_while() -> None:
    """A key is there until its time is over. Adding it again starts the time again."""
    memory = TTLCache(10, 5)
    assert not memory.has("a", 100)
    memory.add("a", 100)
    assert (memory.has("a", 109.9), memory.has("b", 101), memory.has("a", 110)) == (True, False, False)
    memory.add("a", 105)
    assert memory.has("a", 112)


def test_the_oldest_is_forgotten_where_there_is_too_much() -> None:
    """What happened again is young again."""
    memory = TTLCache(10, 2)
    for now, what in ((100, "a"), (101, "b"), (102, "a"), (103, "c")):
        memory.add(what, now)
    assert [memory.has(what, 104) for what in "abc"] == [True, False, True]


def test_what_is_over_is_not_kept() -> None:
    """A memory of much that is long over holds nothing of it."""
    memory = TTLCache(10, 1000)
    for number in range(500):
        memory.add(number, number)
    assert len(memory) <= 11
