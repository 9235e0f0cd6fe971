"""How old a cache may be, at each step of losing the watch and having it again."""

from __future__ import annotations

from math import inf

import pytest
from support.fakes.watching import (
    A_MOVED,
    HTML,
    NO_STREAMS,
    WATCHING,
    A,
    B,
    Driver,
    Says,
    error_event,
    lists,
    manager,
    pages,
    refuses,
)
from support.models.model_api import bookmark, event, refusal

from webhook.kube.cache.caches import cache_state
from webhook.kube.informer.connection import SETTLE_SECONDS, SILENCE_SECONDS, STALE_AFTER_SECONDS, WATCH_SECONDS

JUST = 0.001
HOUR, DAY = 3_600.0, 86_400.0


def ages(driver: Driver, *after: float) -> list[float]:
    """The age at so many seconds from now."""
    return [driver.machine.age(driver.now + seconds) for seconds in after]


def lost() -> Driver:
    """A cache that was listed, and has no watch yet."""
    driver = Driver()
    driver.play(lists(A, B))
    return driver


def reopened(driver: Driver, body: bytes = b"") -> None:
    """The watch is there again, and says this."""
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    driver.feed(body)


def test_a_cache_without_a_list_is_not_fresh() -> None:
    """Before the first list nothing is known, and nothing is fresh."""
    driver = Driver()
    assert driver.machine.age(0.0) == inf
    assert not driver.machine.fresh(0.0)
    driver.play(refuses(refusal(403, "Forbidden")))
    assert not driver.machine.fresh(driver.now)


def test_a_streaming_list_counts_from_its_request() -> None:
    """It has the objects of then. A bookmark ends it, and no more of it is wanted: a watch of its own follows."""
    driver = Driver()
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    assert driver.feed(event("ADDED", A))
    assert ages(driver, 0, 50) == [inf, inf]
    driver.now += 20
    assert not driver.feed(bookmark(10, end=True) + event("ADDED", B))
    assert ages(driver, 0, 5) == [20, 25]
    driver.machine.ended(driver.now)
    assert (driver.machine.problem, sorted(driver.shown)) == ("", ["a"])
    assert not driver.machine.fresh(driver.now)
    assert dict(driver.ask().query)["resourceVersion"] == "10"
    driver.machine.opened(200, None, driver.now)
    assert ages(driver, 0, SETTLE_SECONDS - JUST, SETTLE_SECONDS, 50) == pytest.approx([20, 21 - JUST, 0, 0])


@pytest.mark.parametrize(
    ("seconds", "fresh"),
    [(0, True), (STALE_AFTER_SECONDS, True), (STALE_AFTER_SECONDS + JUST, False)],
    ids=["at once", "just", "no longer"],
)
def test_a_cache_is_fresh_for_10_seconds_after_the_watch_is_lost(seconds: float, fresh: bool) -> None:  # noqa: FBT001 - a row's
    """A watch that ended in order was alive until then, so the age counts from its end."""
    driver = lost()
    driver.play(Says(seconds=80))
    assert driver.machine.age(driver.now + seconds) == pytest.approx(seconds)
    assert driver.machine.fresh(driver.now + seconds) is fresh


def test_a_paged_list_counts_from_when_it_was_asked_for() -> None:
    """All pages show the moment of the first one, which is not before its request."""
    driver = Driver()
    driver.play(*NO_STREAMS)
    driver.ask()
    asked = driver.now
    driver.hear(pages(A, continue_="t2", seconds=4))
    driver.play(refuses(refusal(429), "5"), pages(B, seconds=4))
    assert driver.machine.age(driver.now) == pytest.approx(driver.now - asked)
    assert driver.now - asked > STALE_AFTER_SECONDS
    assert not driver.machine.fresh(driver.now)


def test_a_broken_connection_counts_from_its_last_event() -> None:
    """The connection may have been dead since its last event."""
    driver = lost()
    reopened(driver)
    driver.now += 20
    driver.feed(bookmark(11))
    driver.now += 60
    driver.machine.ended(driver.now, "nothing came for 60 s", silent=True)
    assert ages(driver, 0, 5) == [60, 65]
    assert not driver.machine.fresh(driver.now)


def test_a_watch_that_is_back_must_settle() -> None:
    """Events of the time without a watch come within SETTLE_SECONDS. Until then the old age counts on."""
    driver = lost()
    driver.now += 500
    reopened(driver)
    back = driver.machine.age(driver.now)
    assert ages(driver, 0, SETTLE_SECONDS - JUST) == pytest.approx([back, back + SETTLE_SECONDS - JUST])
    assert ages(driver, SETTLE_SECONDS, 60) == [0, 0]
    assert not driver.machine.fresh(driver.now + SETTLE_SECONDS - JUST)
    assert driver.machine.fresh(driver.now + SETTLE_SECONDS)


@pytest.mark.parametrize(
    "says",
    [
        Says(HTML, seconds=0),
        Says(error_event(410, "Expired"), seconds=0),
        Says(error_event(500, "InternalError"), seconds=0),
        Says(event("MODIFIED", manager("a", 4, "n9")), seconds=0),
        Says(error="reset", seconds=0.9),
        Says(event("MODIFIED", A_MOVED), error="reset", seconds=0.9),
        Says(seconds=0.9),
        Says(error="nothing came for 90 s", silent=True, seconds=90),
        Says(error="can't connect", reached=False),
        Says(status=500),
    ],
    ids=[
        "HTML with status 200",
        "410 as ERROR event",
        "500 as ERROR event",
        "an event from before",
        "cut before it settled",
        "an event, and cut before it settled",
        "ended before it settled",
        "silent from the beginning",
        "no connection",
        "500",
    ],
)
def test_a_watch_that_fails_confirms_nothing(says: Says) -> None:
    """The age counts on, because nothing has confirmed the objects."""
    driver = lost()
    since = driver.now
    driver.play(says)
    assert driver.machine.age(driver.now) == pytest.approx(driver.now - since)
    driver.play(*[says] * 20)
    assert not driver.machine.fresh(driver.now)


def test_a_watch_that_no_task_drives_is_not_fresh() -> None:
    """The task may have ended without a report. After SILENCE_SECONDS without an event the cache is not fresh."""
    driver = lost()
    driver.now += 7
    reopened(driver)
    fresh = [driver.machine.fresh(driver.now + seconds) for seconds in (SILENCE_SECONDS, SILENCE_SECONDS + JUST, DAY)]
    assert fresh == [True, False, False]
    assert driver.machine.age(driver.now + DAY) == pytest.approx(DAY + 7)


@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_a_collection_that_nobody_changes_stays_fresh(chance: float) -> None:
    """It stays fresh for an hour without an event or a bookmark: the API server ends each watch in order."""
    driver = Driver(random=lambda: chance)
    driver.play(lists(A, B))
    began = driver.now
    while driver.now < began + HOUR:
        seconds = int(dict(driver.ask().query)["timeoutSeconds"])
        driver.machine.opened(200, None, driver.now)
        assert all(driver.machine.fresh(driver.now + after) for after in range(seconds + 1))
        driver.now += seconds
        driver.machine.ended(driver.now)
    assert (driver.asked[0], set(driver.asked[1:]), set(driver.waited)) == ("list", {"watch 10"}, {0.0})
    assert WATCH_SECONDS[1] < SILENCE_SECONDS


def test_a_kind_that_is_not_installed_is_known_to_be_empty() -> None:
    """It is empty for 10 s after each answer that says so."""
    driver = Driver()
    driver.play(Says(b"404 page not found", 404))
    assert driver.machine.synced
    assert driver.machine.fresh(driver.now + STALE_AFTER_SECONDS)
    assert not driver.machine.fresh(driver.now + STALE_AFTER_SECONDS + JUST)


def test_its_problem_is_over_when_it_has_settled() -> None:
    """The problem stays until SETTLE_SECONDS after the watch is up, because a status 200 alone proves nothing."""
    driver = lost()
    driver.machine.ended(driver.now, "reset")
    reopened(driver)
    driver.machine.settle(driver.now + SETTLE_SECONDS - JUST)
    assert driver.machine.problem == "cut: reset"
    driver.machine.settle(driver.now + SETTLE_SECONDS)
    assert driver.machine.problem == ""


def _details(driver: Driver, *after: float) -> list[str]:
    return [cache_state(driver.machine, driver.now + seconds).detail for seconds in after]


def test_a_cache_says_how_old_its_knowledge_is() -> None:
    """Between the list and its watch there is no problem, and no more is known than the list."""
    driver = Driver()
    assert _details(driver, 0) == ["not synced: not listed yet"]
    driver.play(*WATCHING)
    assert _details(driver, 3) == ["2 objects, known 3 s ago"]
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    assert _details(driver, SETTLE_SECONDS, 50) == ["2 objects, last event 1 s ago", "2 objects, last event 50 s ago"]
    driver.feed(event("MODIFIED", manager("b", 12, 5)))
    driver.machine.ended(driver.now + 50, "reset")
    assert _details(driver, 60) == ["1 objects, 1 unreadable ones left out so far, known 60 s ago: cut: reset"]
