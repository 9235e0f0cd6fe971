"""The cache against a model of the API server: any changes, any faults, in any order.

Two machines get the same bytes, one whole and one byte by byte, and must agree after every step. They show only states
that the server had, in the order in which it had them. After the faults stop, they show the server's own state.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.fakes.watching import Driver, Shown, byte_by_byte, manager, whole, words
from support.models.model_api import Answer, Collection, Watch, bookmark, event, refusal, status

from webhook.kube.informer.connection import SETTLE_SECONDS

NAMES = st.sampled_from("abc")
NODES = st.sampled_from(["n1", "n2", None])
CODES = st.sampled_from([400, 401, 403, 404, 410, 422, 429, 500, 502, 503, 504])
GARBAGE = b"\xff<html>\n"
STEPS_TO_HEAL = 60

CHANGE = st.one_of(
    st.tuples(st.just("put"), NAMES, NODES),
    st.tuples(st.just("put"), NAMES, NODES),
    st.tuples(st.just("remove"), NAMES),
    st.tuples(st.just("compact")),
    st.tuples(st.just("bookmark")),
)
HEAR = st.tuples(st.just("hear"), st.sampled_from([1.0, 1.0, 1.0, 0.5]) | st.floats(0, 1))
FAULT = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.1, 3.0, 80.0])),
    st.tuples(st.just("cut"), st.booleans()),
    st.tuples(st.just("cut"), st.booleans()),
    st.tuples(st.just("end")),
    st.tuples(st.just("garbage")),
    st.tuples(st.just("refuse"), CODES),
    st.tuples(st.just("error_event"), CODES),
    st.tuples(st.just("down")),
    st.tuples(st.just("restore"), st.integers(1, 4), st.just(value=False)),
    st.tuples(st.just("restore"), st.integers(1, 2), st.just(value=True)),
)
ROUNDS = st.lists(st.tuples(st.lists(CHANGE, max_size=4), HEAR, st.lists(CHANGE, max_size=2), FAULT), max_size=12)
"""Rounds of what happens while somebody listens, and of a fault with what happens before it is over."""


class World:
    """A server, two machines that ask it the same, and the one connection that both think they have."""

    def __init__(self, streaming: str) -> None:
        self.server = Collection(streaming=streaming, page_objects=2)
        self.drivers = (Driver(whole), Driver(byte_by_byte))
        self.unheard: bytes | None = None  # None: there is no connection
        self.watch: Watch | None = None
        self._at = 0  # of server.past: the last state that was shown

    # What happens to the server.

    def put(self, name: str, node: str | None) -> None:
        """Write a ShareManager."""
        self.server.put(manager(name, 0, node))

    def remove(self, name: str) -> None:
        """Delete one."""
        self.server.remove(name, "longhorn-system")

    def compact(self) -> None:
        """Forget the history."""
        self.server.compact()

    def bookmark(self) -> None:
        """Say how far everybody is."""
        self.server.bookmark()

    def restore(self, back: int, quietly: bool) -> None:  # noqa: FBT001 - a step's
        """Go back to a backup. The client comes before the server is as far again: else nobody could tell.

        `quietly`: the server takes a version that it has not come to for good, and only its bookmark gives it away.
        """
        if self.unheard is not None:
            self.cut(silent=False)
        self.server.restore(max(1, self.server.revision - back))
        asked = self._ask()
        version = int(asked.get("resourceVersion", "0"))
        if quietly and version > self.server.revision:
            self._opened(200)
            self._feed(bookmark(self.server.revision))
        else:
            self._answer(asked)
            self.hear(1.0)

    # What happens to the connection.

    def hear(self, share: float) -> None:
        """Hear so much of what there is to hear, on a connection that is made where there is none."""
        if self.unheard is None:
            self._answer(self._ask())
        assert self.unheard is not None
        self.unheard += self.watch.said() if self.watch else b""
        now = round(len(self.unheard) * share)
        heard, self.unheard = self.unheard[:now], self.unheard[now:]
        self._feed(heard)
        if self.unheard == b"" and self.watch is None:
            self._over("")

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        for driver in self.drivers:
            driver.now += seconds
            driver.machine.settle(driver.now)

    def cut(self, silent: bool) -> None:  # noqa: FBT001 - a step's
        """The connection breaks, or is found out to be dead."""
        self._connected()
        self._over("reset", silent=silent)

    def end(self) -> None:
        """The answer ends in order, wherever it was."""
        self._connected()
        self._over("")

    def garbage(self) -> None:
        """Somebody else says something."""
        self._connected()
        self._feed(GARBAGE)

    def error_event(self, code: int) -> None:
        """The watch ends with a Status; in a page it is garbage."""
        self._connected()
        self._feed(b"\n" + event("ERROR", status(code)))

    def refuse(self, code: int) -> None:
        """The next request is refused."""
        if self.unheard is not None:
            self._over("reset")
        self._ask()
        self._opened(code)
        self._feed(refusal(code).body)
        self._over("")

    def down(self) -> None:
        """The next request finds nobody."""
        if self.unheard is not None:
            self._over("reset")
        self._ask()
        self._over("can't connect")

    # What must hold.

    def check(self) -> None:
        """Both agree, and have shown only states that the server had, in its order."""
        one, other = self.drivers
        assert one.shown == other.shown
        assert one.machine.problem == other.machine.problem
        assert one.machine.causes == other.machine.causes
        assert one.machine.age(one.now) == other.machine.age(other.now)
        past = [shape(state) for state in self.server.past]
        for shown in other.seen[1:]:
            if not (shown == {} and other.machine.synced and "not installed" in other.machine.problem):
                assert shown in past[self._at :], f"{shown} was never so, or before what was shown last"
                self._at = past.index(shown, self._at)
        other.seen = other.seen[-1:]

    def heal(self) -> None:
        """No more faults: within a few requests the cache is the server's, and says so."""
        for _ in range(STEPS_TO_HEAL):
            self.hear(1.0)
            self.check()
            if self.watch and self.drivers[0].machine.synced and not self.watch.said():
                break
        self.bookmark()  # without bookmarks a watch does not stay fresh
        self.hear(1.0)
        self.wait(SETTLE_SECONDS)
        for driver in self.drivers:
            assert driver.shown == shape(self.server.objects)
            assert driver.machine.problem == ""
            assert driver.machine.age(driver.now) == 0
            assert driver.machine.fresh(driver.now)

    # How.

    def _connected(self) -> None:
        if self.unheard is None:
            self._answer(self._ask())

    def _ask(self) -> dict[str, str]:
        one, other = (driver.ask() for driver in self.drivers)
        assert words(one) == words(other)
        return dict(one.query)

    def _answer(self, query: dict[str, str]) -> None:
        answer = self.server.answer(query)
        if isinstance(answer, Answer):
            self._opened(answer.status)
            self.unheard = answer.body
        else:
            self._opened(200)
            self.watch = answer

    def _opened(self, code: int) -> None:
        self.unheard, self.watch = b"", None
        for driver in self.drivers:
            driver.machine.opened(code, None, driver.now)

    def _feed(self, body: bytes) -> None:
        one, other = (driver.feed(body) for driver in self.drivers)
        assert one == other
        if not one:
            self._over("")

    def _over(self, error: str, *, silent: bool = False) -> None:
        self.unheard = None
        if self.watch:
            self.server.watches.remove(self.watch)
        self.watch = None
        for driver in self.drivers:
            driver.now += 0.1
            driver.machine.ended(driver.now, error, silent=silent)
            driver.look()


def shape(state: dict[Any, Any]) -> Shown:
    """A state of the server as a Driver shows it."""
    return {name: each["status"]["ownerID"] for (_, name), each in state.items()}


@given(st.sampled_from(["served", "refused", "ignored"]), ROUNDS)
def test_after_any_faults_the_cache_is_the_servers(streaming: str, rounds: list[tuple[Any, ...]]) -> None:
    """At every step a state that was, in order; the same whole and byte by byte; in the end the server's own."""
    world = World(streaming)
    for before, hear, meanwhile, fault in rounds:
        for name, *arguments in (*before, hear, *meanwhile, fault):
            getattr(world, name)(*arguments)
            world.check()
    world.heal()
