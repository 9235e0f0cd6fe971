"""A ListWatch without a network: a test gives a server's answers, whole or byte by byte, and moves the clock.

The collection is that of ShareManagers, each with the node that it is on: small objects, and all of one is seen. A Row
is a server's answers with the expected result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from support.models.model_api import Answer, bookmark, event, page, refusal, status

from webhook.core.view import Kind
from webhook.kube.informer.connection import SETTLE_SECONDS, Cause, Request, Wait
from webhook.kube.informer.list_watch import ListWatch
from webhook.kube.informer.store import Resource
from webhook.kube.kinds import resources

RESOURCES = {resource.kind: resource for resource in resources("longhorn-system")}
RESOURCE = RESOURCES[Kind.SHARE_MANAGER]
Shown = dict[str, str | None]
Cut = Callable[[bytes], Iterable[bytes]]


def whole(body: bytes) -> Iterable[bytes]:
    """Return the body in one piece; nothing if the body is empty."""
    return [body] if body else []


def byte_by_byte(body: bytes) -> Iterator[bytes]:
    """The body in pieces of one byte."""
    return (body[i : i + 1] for i in range(len(body)))


CUTS: dict[str, Cut] = {"whole": whole, "byte by byte": byte_by_byte}


def manager(name: str, version: int, node: Any) -> dict[str, Any]:
    """A ShareManager on a node."""
    metadata = {"name": name, "namespace": "longhorn-system", "resourceVersion": str(version)}
    return {"metadata": metadata, "spec": {}, "status": {"ownerID": node, "state": "running"}}


class Says(NamedTuple):
    """One answer of a server. It takes `seconds`. `error` says how the connection broke; empty if it did not."""

    body: bytes = b""
    status: int = 200
    retry_after: str | None = None
    error: str = ""
    silent: bool = False
    seconds: float = 1.0
    reached: bool = True


def refuses(answer: Answer, retry_after: str | None = None) -> Says:
    """An HTTP error."""
    return Says(answer.body, answer.status, retry_after)


def lists(*objects: dict[str, Any], version: int = 10, **more: Any) -> Says:
    """A streaming list, which ends as soon as it is whole."""
    body = b"".join(event("ADDED", each) for each in objects) + bookmark(version, end=True)
    return Says(**{"body": body, "seconds": 0, **more})


def pages(*objects: dict[str, Any], version: int = 10, continue_: str = "", **more: Any) -> Says:
    """A page of a list."""
    return Says(**{"body": page(list(objects), version, continue_), **more})


class Driver:
    """Plays a server's answers to a machine.

    Attributes:
        asked: each request in a few words; see `words`.
        waited: seconds before each request.
        seen: what the machine has shown after each piece, without repetitions.
    """

    def __init__(
        self, cut: Cut = whole, *, random: Callable[[], float] = lambda: 0.5, resource: Resource = RESOURCE
    ) -> None:
        self.machine = ListWatch(resource, random=random)
        self.now = 1000.0
        self.asked: list[str] = []
        self.waited: list[float] = []
        self.seen: list[Shown] = [{}]
        self._cut = cut

    @property
    def shown(self) -> Shown:
        """ShareManager -> node, as the machine stores it now."""
        return {str(name): record.status and record.status.owner_id for name, record in self.machine.objects.items()}

    def play(self, *answers: Says) -> None:
        """Let the machine make one request for each answer, and give it the answer."""
        for says in answers:
            self.ask()
            self.hear(says)

    def ask(self) -> Request:
        """Move the clock until the machine makes its next request."""
        step, waited = self.machine.next(self.now), 0.0
        while isinstance(step, Wait):
            assert step.seconds > 0
            waited += step.seconds
            self.now += step.seconds
            step = self.machine.next(self.now)
        self.waited.append(waited)
        self.asked.append(words(step))
        return step

    def hear(self, says: Says) -> None:
        """Give the machine the answer to its last request."""
        if says.reached:
            self.machine.opened(says.status, says.retry_after, self.now)
            if self.feed(says.body) and says.seconds >= SETTLE_SECONDS:
                self.machine.settle(self.now + SETTLE_SECONDS)
        self.now += says.seconds
        self.machine.ended(self.now, says.error, silent=says.silent)
        self.look()

    def feed(self, body: bytes) -> bool:
        """Give the machine a part of the body. Return False if the machine wants no more."""
        for piece in self._cut(body):
            wanted = self.machine.feed(piece, self.now)
            self.look()
            if not wanted:
                return False
        return True

    def look(self) -> None:
        """Note the objects if they have changed."""
        if self.shown != self.seen[-1]:
            self.seen.append(self.shown)


def words(request: Request) -> str:
    """Return the request in short: `list` (by watch), `watch VERSION`, `page`, or `page TOKEN`."""
    query = dict(request.query)
    if "sendInitialEvents" in query:
        return "list"
    if "watch" in query:
        return f"watch {query['resourceVersion']}"
    return " ".join(filter(None, ("page", query.get("continue"))))


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
