"""Certificate and authority are replaced while pods are created and the controller is killed: nobody notices."""

from __future__ import annotations

import base64
import random
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pytest
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, SECRET, trust
from support.control_plane.kube_api import Api
from support.control_plane.unattended import SERVER_NAME, Unattended, without_us
from support.fakes.proxy import Address
from support.repeated_step import RepeatedStep
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Admitting, Counted, admitted, until
from support.sizes import size
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


CREATES: Final = size("ROTATION_CREATES")
ROTATIONS: Final = size("ROTATIONS")
AUTHORITIES: Final = max(2, ROTATIONS // 10)  # each takes a controller that lives for 8 s
CLIENTS: Final = 4
LAGS: Final = (0.0, 1.0)  # seconds, of the servers' kubelets
CALLER_LAG: Final = 1.0  # seconds until a slow API server has a new bundle: half of what the controller allows

# Renewed 2 s after it was issued, while what is served is valid for another minute. A server serves what it had for
# 1 s (its kubelet) and 1 s (its look) after the Secret was written; the rest is for a machine that is busy.
RENEWAL: Final = ("--lifetime", "60s", "--renew-at", "0.034")
CAREFUL: Final = ("--propagation-seconds", "2", "--retire-seconds", "6")
KILLED_AFTER_PODS: Final = (20, 500)  # at least, at most: at any point of a rotation
LATE_SECONDS: Final = 2.5  # of an API server that is slower to hear of a bundle than it is allowed
REQUESTS: Final = "apiserver_admission_webhook_request_total"

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Unattended]:
    """The whole install on a control plane of its own. The certificate controller made the certificate, and stopped."""
    with (
        without_us(tmp_path_factory.mktemp("own")) as plane,
        Unattended(plane, tmp_path_factory.mktemp("rotation"), LAGS) as install,
    ):
        install.start_servers()
        keeper = install.start_keeper(*RENEWAL, *CAREFUL)
        install.until_serving()
        until(lambda: admitted(plane.api, "disk").decision, "a pod with a decision")
        keeper.kill()
        yield install


def test_no_call_is_lost_while_all_is_rotated_and_the_controller_is_killed(install: Unattended) -> None:
    """By SIGKILL at any moment; the next one was started before or is started then. Every pod gets its pin."""
    api = install.plane.api
    moments = random.Random(5)  # noqa: S311 - nobody is to be kept from guessing
    kills, removed, connections, counted = 0, 0, install.proxy.accepted, Counted(api)
    with (
        TlsCallers(api, install.endpoints, CALLER_LAG) as callers,
        Admitting(api, "disk", clients=CLIENTS) as admitting,
    ):
        keeper = install.start_keeper(*RENEWAL, *CAREFUL)
        while (
            len(admitting.admissions) < CREATES
            or len(callers.leaves) < ROTATIONS
            or callers.authorities_retired < AUTHORITIES
        ):
            if callers.authorities_retired == removed:
                api.delete(AUTHORITY_SECRET)
                removed += 1
            old, rolled_out = keeper, kills % 2 == 0
            if rolled_out:
                keeper = install.start_keeper(*RENEWAL, *CAREFUL)
            keeper.until_logged("keeping")
            admitting.until(more=moments.randint(*KILLED_AFTER_PODS))
            old.kill()
            kills += 1
            if not rolled_out:
                keeper = install.start_keeper(*RENEWAL, *CAREFUL)
        keeper.kill()
    more = counted.more()
    connections = install.proxy.accepted - connections
    taken = [len(server.said("certificate loaded")) for server in install.servers]
    pods = len(admitting.admissions)
    figures = (
        f"{pods} pods, {len(callers.leaves)} certificates in the Secret, "
        f"{callers.authorities_retired} authorities retired, "
        f"{taken} certificates taken, {kills} certificate controllers killed, "
        f"{connections} connections of the API server, {callers.handshakes} handshakes of late callers. "
        f"Lost: {more(FAIL_OPEN, name=WEBHOOK):g} calls, "
        f"{len(callers.lost)} handshakes"
    )
    print(figures)  # noqa: T201 - shown by pytest -rP
    assert (admitting.refused, admitting.away) == ([], [])
    assert (more(FAIL_OPEN, name=WEBHOOK), more(REJECTIONS, name=WEBHOOK)) == (0, 0)
    assert more(REQUESTS, name=WEBHOOK, code="200") == more(REQUESTS, name=WEBHOOK) == pods
    assert [pod.decision for pod in admitting.admissions if pod.required != ["node-a"]] == []
    assert callers.lost == []
    assert min(len(callers.leaves), callers.handshakes) >= ROTATIONS
    assert connections >= AUTHORITIES  # a renewal makes no API server connect again
    assert min(taken) >= ROTATIONS / 2  # one that looks late may find the one after the next


def replaced(install: Unattended) -> bool:
    """Have the authority replaced, unless a replacement is under way: then it is not the one of the bundle. True."""
    api = install.plane.api
    authority = api.find(AUTHORITY_SECRET)
    if authority and authority["data"]["tls.crt"] == trust(api.get(CONFIGURATION)):
        api.delete(AUTHORITY_SECRET, missing_ok=True)
    return True


def test_a_certificate_that_is_served_too_early_is_noticed(install: Unattended) -> None:
    """API servers that do not have the new authority yet refuse the certificate."""
    keeper = install.start_keeper("--propagation-seconds", "0", "--retire-seconds", "6")
    with TlsCallers(install.plane.api, install.endpoints, LATE_SECONDS) as callers:
        until(lambda: replaced(install) and callers.lost, "a refusal")
    keeper.kill()
    assert "CERTIFICATE_VERIFY_FAILED" in callers.lost[0].reason


def test_an_authority_that_is_dropped_too_early_is_noticed(install: Unattended) -> None:
    """Servers still serve what it certifies: calls fail open, and their pods come without a decision."""
    counted = Counted(install.plane.api)
    keeper = install.start_keeper("--propagation-seconds", "2", "--retire-seconds", "0")
    with Admitting(install.plane.api, "disk") as admitting:
        until(
            lambda: replaced(install) and [pod for pod in admitting.admissions if not pod.decision],
            "a pod without a decision",
        )
    keeper.kill()
    unseen = [pod for pod in admitting.admissions if not pod.decision]
    assert len(unseen) == counted.more()(FAIL_OPEN, name=WEBHOOK)
    assert (admitting.refused, admitting.away) == ([], [])
