"""The serving certificate: a good pair is loaded at the next check; a bad one is logged and changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from support.control_plane.mounted import (
    DAY,
    END,
    MINUTE,
    NOON,
    SECOND,
    Clock,
    Issued,
    Mounted,
    good,
    served,
)

from webhook.component_base.health import Check
from webhook.component_base.pem import Problem
from webhook.serving.certificate import ServingCertificate

UNTIL_END: Final = "valid until 2026-04-01T00:00:00Z"


@pytest.fixture
def clock() -> Clock:
    """A clock at noon of a day in February."""
    return Clock()


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return (level, message) of each log line since the last call."""
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return lines


Harm = Callable[[Issued, Issued], Mapping[str, bytes | None]]
"""(the pair that is served, a new one) -> the content of the volume."""

BAD: Final[dict[str, tuple[Harm, Problem, str]]] = {
    "torn pair": (
        lambda old, new: {"tls.crt": old.certificate, "tls.key": new.key},
        Problem.KEY_MISMATCH,
        "tls.key: not the private key of ",
    ),
    "expired": (
        lambda _, __: good(not_after=NOON - SECOND).payload,
        Problem.EXPIRED,
        "tls.crt: expired at 2026-02-01T11:59:59Z; issue a new one",
    ),
    "wrong name": (
        lambda _, __: good("other.example").payload,
        Problem.WRONG_NAME,
        "tls.crt: for other.example; expected localhost among its subject alternative names",
    ),
    "Secret emptied": (lambda _, __: {}, Problem.MISSING, "tls.crt: No such file or directory"),
}


@pytest.mark.parametrize(("harm", "expected"), [(harm, rest) for harm, *rest in BAD.values()], ids=BAD)
def test_what_is_wrong_keeps_the_old_pair_and_the_next_good_one_is_taken(
    mounted: Mounted,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    harm: Harm,
    expected: tuple[Problem, str],
) -> None:
    """The problem is logged each minute, counted once, and shown in /readyz. Then a good pair is served."""
    caplog.set_level(logging.INFO)
    problem, sentence = expected
    old, new, next_good = good(), good(), good(not_after=END + DAY)
    mounted.put(old.payload)
    certificate = ServingCertificate(mounted.files, now=clock)
    before = certificate.context

    mounted.put(harm(old, new))
    for _ in range(3):
        certificate.check_files()
        clock.now += MINUTE
    assert certificate.context is before
    assert served(certificate) == old.der
    assert (certificate.failures, certificate.reloads, certificate.not_after) == ({problem: 1}, 0, END)
    check = certificate.check()
    assert (check.ok, check.gates) == (False, False)
    assert sentence in check.detail
    assert check.detail.endswith(f"; serving a certificate {UNTIL_END}")
    assert len(check.detail.splitlines()) == 1
    assert said(caplog) == [("ERROR", "certificate not loaded")] * 3

    mounted.put(next_good.payload)
    certificate.check_files()
    assert served(certificate) == next_good.der
    assert (certificate.failures, certificate.reloads, certificate.not_after) == ({problem: 1}, 1, END + DAY)
    assert certificate.check() == Check("certificate", ok=True, detail="valid until 2026-04-02T00:00:00Z")
    assert said(caplog) == [("INFO", "certificate loaded")]


def test_the_same_files_again_are_no_news(mounted: Mounted, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A check of unchanged files changes nothing, even after a problem in between."""
    caplog.set_level(logging.INFO)
    pair = good()
    mounted.put(pair.payload)
    certificate = ServingCertificate(mounted.files, now=clock)
    before = certificate.context
    mounted.put(pair.payload)
    certificate.check_files()
    assert said(caplog) == []
    mounted.put({})
    certificate.check_files()
    mounted.put(pair.payload)
    certificate.check_files()
    assert said(caplog) == [
        ("ERROR", "certificate not loaded"),
        ("INFO", "certificate files match the served certificate again"),
    ]
    assert certificate.context is before
    assert certificate.check().ok


def test_time_alone_makes_a_pair_good(mounted: Mounted, clock: Clock) -> None:
    """A pair that is not valid yet is loaded in its first valid second, without a change of the files."""
    old, early = good(), good(not_before=NOON + DAY)
    mounted.put(old.payload)
    certificate = ServingCertificate(mounted.files, now=clock)
    mounted.put(early.payload)
    certificate.check_files()
    clock.now = NOON + DAY - SECOND
    certificate.check_files()
    assert served(certificate) == old.der
    clock.now = NOON + DAY
    certificate.check_files()
    assert served(certificate) == early.der


def test_an_expired_pair_is_served_on_loudly(mounted: Mounted, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """No certificate is not better than an expired one. It is logged at once and each minute until a new pair comes."""
    pair, new = good(), good(not_after=END + DAY)
    mounted.put(pair.payload)
    certificate = ServingCertificate(mounted.files, now=clock)
    clock.now = END - SECOND
    certificate.check_files()
    assert (said(caplog), certificate.check().ok) == ([], True)
    for clock.now in (END, END + SECOND, END + MINUTE - SECOND):
        certificate.check_files()
    assert said(caplog) == [("ERROR", "serving an expired certificate")]
    check = certificate.check()
    assert (check.ok, check.gates) == (False, False)
    assert "tls.crt: expired at 2026-04-01T00:00:00Z; issue a new one" in check.detail
    assert served(certificate) == pair.der
    clock.now = END + MINUTE
    certificate.check_files()
    assert said(caplog) == [("ERROR", "serving an expired certificate")]
    assert certificate.failures == {Problem.EXPIRED: 1}
    mounted.put(new.payload)
    certificate.check_files()
    assert certificate.check().ok
