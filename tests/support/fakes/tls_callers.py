"""Callers in the place of API servers that get a caBundle late. They make handshakes with every server all the time.

An API server makes few connections and keeps them, so that its calls do not show whether a handshake would succeed at
a given moment. These callers try ten times a second, with the current caBundle and with that of `lag` seconds ago. They
also count the authorities that leave the bundle.
"""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from support.control_plane.certs_process import CONFIGURATION, SECRET, trust
from support.control_plane.kube_api import Api
from support.control_plane.unattended import SERVER_NAME
from support.fakes.proxy import Address
from support.repeated_step import RepeatedStep
from support.waits import MAX_WAIT_SECONDS

_LOOK_SECONDS: Final = 0.1
_SLOW_SECONDS: Final = 0.2  # a caller that this machine has held up for longer is later than it was meant to be
_END: Final = "-----END CERTIFICATE-----\n"


class _Trusted(NamedTuple):
    asked_at: float
    bundle: str
    context: ssl.SSLContext


class Lost(NamedTuple):
    """A handshake that failed: by how much the caller was late, with whom, and why."""

    late_seconds: float
    server: Address
    reason: str


class TlsCallers(RepeatedStep):
    """A context manager. `handshakes` counts the successful handshakes, `lost` has the others.

    `leaves` are the certificates that the Secret has held.
    """

    def __init__(self, api: Api, servers: Sequence[Address], lag: float) -> None:
        super().__init__(_LOOK_SECONDS)
        self.handshakes = 0
        self.lost: list[Lost] = []
        self.leaves: set[str] = set()
        self._carried: set[str] = set()
        self._retired: set[str] = set()
        self._api = Api(api.url, api.token, api._trust)  # its connection is ours alone
        self._servers, self._lag = servers, lag
        self._trusted: deque[_Trusted] = deque()  # the oldest first

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._api.forget_connections()

    @property
    def authorities_retired(self) -> int:
        """The number of authorities that have left the bundle."""
        return len(self._retired)

    def step(self) -> None:
        """Make a handshake with each server, by the caBundle as it is and as it was `lag` seconds ago."""
        self._look()
        for trusted in (self._trusted[0], self._trusted[-1]):
            for server in self._servers:
                self._call(server, trusted)

    def _look(self) -> None:
        asked_at = time.monotonic()
        secret = self._api.find(SECRET) or {}
        self.leaves.add((secret.get("data") or {}).get("tls.crt", ""))
        bundle = base64.b64decode(trust(self._api.get(CONFIGURATION))).decode()
        if not self._trusted or bundle != self._trusted[-1].bundle:
            carried = set(bundle.split(_END))
            self._retired |= self._carried - carried
            self._carried = carried
            context = ssl.create_default_context(cadata=bundle)
        else:
            context = self._trusted[-1].context
        self._trusted.append(_Trusted(asked_at, bundle, context))
        while len(self._trusted) > 1 and self._trusted[0].asked_at < asked_at - self._lag:
            self._trusted.popleft()

    def _call(self, server: Address, trusted: _Trusted) -> None:
        try:
            with (
                socket.create_connection(server, timeout=MAX_WAIT_SECONDS) as plain,
                trusted.context.wrap_socket(plain, server_hostname=SERVER_NAME),
            ):
                self.handshakes += 1
        except OSError as error:
            late = time.monotonic() - trusted.asked_at
            if late < self._lag + _SLOW_SECONDS:
                self.lost.append(Lost(round(late, 3), server, str(error)))
