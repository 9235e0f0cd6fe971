"""What /readyz?verbose says of one cache."""

from __future__ import annotations

from support.fakes.watching import WATCHING, Driver, manager
from support.models.model_api import event

from webhook.kube.cache.caches import cache_state
from webhook.kube.informer.connection import SETTLE_SECONDS


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
