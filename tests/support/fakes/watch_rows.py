"""Rows of a server's answers to a ListWatch with the expected result, and the check of a row."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.fakes.watching import CUTS, Cut, Driver, Says, Shown, lists, manager, pages, refuses
from support.models.model_api import event, refusal, status

from webhook.kube.informer.connection import Cause

A, B = manager("a", 3, "n1"), manager("b", 7, "n2")
A_MOVED = manager("a", 11, "n3")
BOTH: Shown = {"a": "n1", "b": "n2"}

WATCHING = (lists(A, B),)
NO_STREAMS = (refuses(refusal(400, "BadRequest")),)
AGAIN = (*WATCHING, refuses(refusal(410, "Expired")))
AGAIN_BY_PAGES = (*NO_STREAMS, pages(A, B), refuses(refusal(410, "Expired")))
HTML = b"<html>\n<body>Please log in</body>\n</html>\n"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A server's answers after `before`, and the result: the next request, the objects, the cause and the problem.

    A row that does not name them keeps both objects, and the next request goes on with the watch where it was.
    """

    name: str
    before: tuple[Says, ...] = WATCHING
    says: tuple[Says, ...]
    then: str = "watch 10"
    shows: Shown = field(default_factory=BOTH.copy)
    cause: Cause | None = None
    problem: str = ""
    between: tuple[Shown, ...] = ()


def error_event(*words: object, **more: object) -> bytes:
    """An ERROR event with a Status."""
    return event("ERROR", status(*words, **more))  # type: ignore[arg-type]


def prove(row: Row, cut: Cut) -> None:
    """Play the row with its bytes cut by `cut`, and check the result."""
    driver = Driver(cut)
    driver.play(*row.before)
    machine, before, counted = driver.machine, driver.shown, driver.machine.causes.copy()
    driver.seen = [before]
    driver.play(*row.says)
    told = machine.problem
    driver.ask()
    assert driver.asked[-1] == row.then
    assert driver.shown == row.shows
    between = () if cut is CUTS["whole"] else row.between
    assert all(seen in (before, *between, row.shows) for seen in driver.seen), driver.seen
    assert machine.causes - counted == ({row.cause: 1} if row.cause else {})
    assert told.startswith(row.problem) if row.problem else not told
    assert told.isprintable()
    assert len(told) < 400
