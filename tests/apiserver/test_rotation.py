"""Certificate and authority are replaced while pods are created and the controller is killed: nobody notices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, trust
from support.control_plane.unattended import Unattended, without_us
from support.fakes.tls_callers import TlsCallers
from support.scenarios.admitting import FAIL_OPEN, REJECTIONS, WEBHOOK, Admitting, Counted, admitted, until
from support.sizes import size

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
