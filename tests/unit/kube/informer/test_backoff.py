"""When a ListWatch asks again."""

from __future__ import annotations

import pytest
from support.fakes.watching import NO_STREAMS, WATCHING, A, Driver, Says, refuses
from support.models.model_api import event, refusal, status, too_large

DOWN = Says(error="can't connect", reached=False, seconds=0)


@pytest.mark.parametrize("before", [(), NO_STREAMS, WATCHING], ids=["list", "page", "watch"])
@pytest.mark.parametrize(
    "fault",
    [
        DOWN,
        Says(error="reset"),
        Says(b"<html>\n"),
        Says(status=500, seconds=5),
        Says(seconds=0.1),
        Says(b"404 page not found", 404),
    ],
    ids=["no connection", "cut", "garbage", "a slow 500", "ends at once", "404"],
)
def test_backoff_is_exponential_and_bounded(before: tuple[Says, ...], fault: Says) -> None:
    """Requests to a server that fails repeatedly get rarer, and come at least every 10 s."""
    driver = Driver(random=lambda: 1.0)
    driver.play(*before, *[fault] * 14)
    driver.ask()
    waited = driver.waited[-14:]
    assert waited[:7] == pytest.approx([0.1 * 2**i for i in range(7)], rel=1e-6)
    assert waited[7:] == pytest.approx([10.0] * 7)


def test_a_streaming_list_that_is_always_cut_backs_off() -> None:
    """A list that was cut is not a success, however long it lasted.

    Otherwise a large cluster would be listed without a pause.
    """
    driver = Driver(random=lambda: 1.0)
    driver.play(*[Says(event("ADDED", A), error="reset", seconds=60)] * 4)
    driver.ask()
    assert driver.waited[-3:] == pytest.approx([0.2, 0.4, 0.8])


@pytest.mark.parametrize(("seconds", "waited"), [(1.9, 1.6), (2.0, 0.1)], ids=["just not", "just"])
def test_a_watch_that_was_up_for_2_seconds_ends_a_run_of_failures(seconds: float, waited: float) -> None:
    """The next failure begins at the shortest backoff."""
    driver = Driver(random=lambda: 1.0)
    driver.play(*WATCHING, *[DOWN] * 4, Says(seconds=seconds, error="reset"))
    driver.ask()
    assert driver.waited[-1] == pytest.approx(waited)


@pytest.mark.parametrize(
    ("says", "asked"),
    [
        (refuses(refusal(429), "7"), 7),
        (refuses(refusal(503), "7"), 7),
        (refuses(refusal(429, retry_after=7)), 7),
        (refuses(refusal(429, retry_after=7), "3"), 7),
        (refuses(too_large(), "1"), 1),
        (Says(event("ERROR", status(429, retry_after=7))), 7),
        (refuses(refusal(429), "9" * 400), 60),
        (refuses(refusal(429), "-7"), 0),
        (refuses(refusal(429), "Fri, 31 Dec 1999 23:59:59 GMT"), 0),
        (refuses(refusal(429), ""), 0),
        (refuses(refusal(429, retry_after=-7)), 0),
    ],
    ids=[
        "429 header",
        "503 header",
        "in the Status",
        "the longer of both",
        "too large a resource version",
        "in an ERROR event",
        "400 digits",
        "negative",
        "a date",
        "empty",
        "negative in the Status",
    ],
)
@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_retry_after_is_obeyed(says: Says, asked: float, chance: float) -> None:
    """The wait is at least the server's Retry-After, up to 60 s, with jitter."""
    driver = Driver(random=lambda: chance)
    driver.play(*WATCHING, says)
    driver.ask()
    assert max(asked, 0.05) <= driver.waited[-1] * (1 + 1e-9)
    assert driver.waited[-1] == pytest.approx(max(asked * (1 + chance / 4), 0.05 * (1 + chance)))


def test_retry_after_counts_once() -> None:
    """The next failure, without a Retry-After, has its own backoff."""
    driver = Driver(random=lambda: 1.0)
    driver.play(*WATCHING, refuses(refusal(429), "7"), refuses(refusal(429)))
    driver.ask()
    assert driver.waited[-1] == pytest.approx(0.2)
