"""The places of a listener's connections: how many there are, and who gives way when there is no room for one more.

Without I/O: sockets are the listener's business. Invariant: a newcomer gets a place unless everybody who could give way
has a call in flight that is waited for; nobody who has one is cut for a newcomer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from webhook.serving.routes import Limits
from webhook.telemetry.record import LOGGER

_TELL_SECONDS: Final = 60.0  # between two log lines that say the same: a flood of connections fills no log


class Peer:
    """An address that has connections. `asks`: a request came from it, on one of those that it has had since."""

    __slots__ = ("address", "asks", "connections")

    def __init__(self, address: str) -> None:
        self.address = address
        self.asks = False
        self.connections = 0


class Holder(Protocol):
    """A connection that has a place. `asked_at`: when its last request began to be handled; any time before that."""

    peer: Peer
    asked_at: float

    @property
    def waited_for(self) -> bool:
        """It has a call in flight, and so short a time that somebody waits for the answer."""
        ...

    def cut(self) -> None:
        """Close it at once."""
        ...


H = TypeVar("H", bound=Holder)


class Places(Generic[H]):
    """Who holds them, in the order in which they came. `now`: the time in seconds."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._all: dict[H, None] = {}
        self._silent: dict[H, None] = {}  # those of them that have never asked
        self._peers: dict[str, Peer] = {}
        self._cut = self._refused = 0
        self._told_at = -inf

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[H]:
        return iter(list(self._all))

    def room(self, address: str) -> Peer | None:
        """Make room for a newcomer from this address. None: there is none, so it is to be refused.

        One address can't fill all places: where it has its share, one of its own connections gives way.
        """
        peer, limits = self._peers.get(address), self._limits
        full_of_it = peer is not None and peer.connections >= limits.connections_per_peer
        if (full_of_it and not self.give_way(peer)) or (len(self._all) >= limits.connections and not self.give_way()):
            self._refused += 1
            self._tell(address)
            return None
        return self._peers.get(address) or Peer(address)

    def give_way(self, peer: Peer | None = None) -> bool:
        """Have one connection, of this peer where one is named, give way; False where none can.

        First who was silent for longest. Then, of the addresses with the most connections, who asked longest ago.
        """
        free = (each for each in self._silent if peer in (None, each.peer) and not each.waited_for)
        victim = next(free, None)
        if victim is None:
            free = (each for each in self._all if peer in (None, each.peer) and not each.waited_for)
            victim = max(free, key=lambda each: (each.peer.connections, -each.asked_at), default=None)
        if victim is None:
            return False
        self.leave(victim)
        victim.cut()
        self._cut += 1
        self._tell(victim.peer.address)
        return True

    def take(self, holder: H) -> None:
        """A newcomer has its place; its peer is the one that `room` gave."""
        peer = holder.peer
        peer.connections += 1
        self._peers[peer.address] = peer
        self._all[holder] = self._silent[holder] = None

    def asked(self, holder: H) -> None:
        """A request came on it."""
        self._silent.pop(holder, None)
        holder.peer.asks = True

    def leave(self, holder: H) -> None:
        """It is gone, or about to go."""
        self._silent.pop(holder, None)
        if holder not in self._all:
            return
        del self._all[holder]
        peer = holder.peer
        peer.connections -= 1
        if not peer.connections:
            del self._peers[peer.address]

    def _tell(self, address: str) -> None:
        now = self._now()
        if now < self._told_at + _TELL_SECONDS:
            return
        self._told_at = now
        so_far = {"cut_so_far": self._cut, "refused_so_far": self._refused}
        fields = {"held": len(self._all), "latest_from": address, **so_far}
        LOGGER.warning("too many connections, some are cut to make room", extra={"fields": fields})
