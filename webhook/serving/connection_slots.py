"""The slots of a listener: how many connections it holds, and which one it closes if there is no free slot.

No I/O here: the listener owns the sockets. Invariant: a new connection gets a slot if one other connection can be
closed for it. A connection whose caller still waits for an answer is never closed for a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from webhook.serving.routes import Limits
from webhook.telemetry.record import LOGGER

_LOG_SECONDS: Final = 60.0  # between two log lines of a flood, so that the flood does not fill the log


class Peer:
    """A remote address that has connections. `has_sent`: a request came from it since its first open connection."""

    __slots__ = ("address", "connections", "has_sent")

    def __init__(self, address: str) -> None:
        self.address = address
        self.has_sent = False
        self.connections = 0


class OpenConnection(Protocol):
    """A connection that has a slot.

    `last_request_at`: the time in seconds at which the handling of its last request began. Before its first request:
    any earlier time.
    """

    peer: Peer
    last_request_at: float

    @property
    def caller_waits(self) -> bool:
        """Whether a call is in flight, and has taken less time than a caller waits for its answer."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...


C = TypeVar("C", bound=OpenConnection)


class ConnectionSlots(Generic[C]):
    """The connections of a listener, oldest first. `now` returns the time in seconds."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._all: dict[C, None] = {}
        self._silent: dict[C, None] = {}  # those that have not sent a request yet
        self._peers: dict[str, Peer] = {}
        self._closed = self._refused = 0
        self._logged_at = -inf

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._all))

    def reserve(self, address: str) -> Peer | None:
        """Free a slot for a new connection from this address. Return its peer, or None to refuse the connection.

        One address can't fill all slots. If it has its share, one of its own connections is closed.
        """
        peer, limits = self._peers.get(address), self._limits
        has_share = peer is not None and peer.connections >= limits.connections_per_peer
        if (has_share and not self.close_one(peer)) or (len(self._all) >= limits.connections and not self.close_one()):
            self._refused += 1
            self._log(address)
            return None
        return self._peers.get(address) or Peer(address)

    def close_one(self, peer: Peer | None = None) -> bool:
        """Close one connection, of `peer` if it is given. Return False if none can be closed.

        The first choice is the oldest connection without a request. The second choice is a connection of the address
        with the most connections: the one whose last request is the longest ago.
        """
        closable = (each for each in self._silent if peer in (None, each.peer) and not each.caller_waits)
        chosen = next(closable, None)
        if chosen is None:
            closable = (each for each in self._all if peer in (None, each.peer) and not each.caller_waits)
            chosen = max(closable, key=lambda each: (each.peer.connections, -each.last_request_at), default=None)
        if chosen is None:
            return False
        self.remove(chosen)
        chosen.abort()
        self._closed += 1
        self._log(chosen.peer.address)
        return True

    def add(self, connection: C) -> None:
        """Give a new connection its slot. Its peer is the one that `reserve` returned."""
        peer = connection.peer
        peer.connections += 1
        self._peers[peer.address] = peer
        self._all[connection] = self._silent[connection] = None

    def request_arrived(self, connection: C) -> None:
        """Note that the connection has sent a request."""
        self._silent.pop(connection, None)
        connection.peer.has_sent = True

    def remove(self, connection: C) -> None:
        """Free the slot of a connection that is closed, or is about to be closed. A second call changes nothing."""
        self._silent.pop(connection, None)
        if connection not in self._all:
            return
        del self._all[connection]
        peer = connection.peer
        peer.connections -= 1
        if not peer.connections:
            del self._peers[peer.address]

    def _log(self, address: str) -> None:
        now = self._now()
        if now < self._logged_at + _LOG_SECONDS:
            return
        self._logged_at = now
        so_far = {"cut_so_far": self._closed, "refused_so_far": self._refused}
        fields = {"held": len(self._all), "latest_from": address, **so_far}
        LOGGER.warning("too many connections: some are closed to accept others", extra={"fields": fields})
