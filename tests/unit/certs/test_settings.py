"""Flags and environment of the certificate controller: each problem is one sentence, with what to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from click import BadParameter, ParamType, UsageError
from support.drivers.command_lines import values

from certs.cli import COMMANDS
from certs.settings import DNS_NAME, DURATION, FRACTION, ControllerSettings


def keeping(**given: str) -> ControllerSettings:
    """The settings that these flags come to."""
    words = (f"--{field.replace('_', '-')}={text}" for field, text in given.items())
    found = values(COMMANDS, "keep", *words)
    return ControllerSettings(**found)


def test_the_defaults_are_thirty_days_renewed_at_two_thirds() -> None:
    """The names are those of the Service in the manifests."""
    policy = keeping().policy
    assert policy.names[0] == "kubevirt-coschedule.kubevirt-coschedule.svc"
    assert (policy.lifetime, policy.renew_before.days) == (timedelta(days=30), 10)
    assert keeping(lifetime="187m").policy.lifetime  # a third of it is more than propagation and retirement
    assert (policy.propagation, policy.retire) == (timedelta(minutes=2), timedelta(hours=1))


READ = [
    *((DURATION, text, value) for text, value in {"30d": timedelta(days=30), "012h": timedelta(hours=12)}.items()),
    *((DURATION, text, value) for text, value in {"15m": timedelta(minutes=15), "90s": timedelta(0, 90)}.items()),
    *((FRACTION, text, value) for text, value in {"2/3": 2 / 3, "0.5": 0.5, ".25": 0.25}.items()),
    (DNS_NAME, "web.a-b", "web.a-b"),
    *((DURATION, text, None) for text in ("", "30", "d", "0d", "-1d", "1.5d", "1w", "30 d", "1d12h")),
    *((FRACTION, text, None) for text in ("", "2", "1", "0", "1/0", "half", "-0.5", "3.1")),
    *((DNS_NAME, text, None) for text in ("", "Web", "web/x", "-web", "web.", "a_b")),
]


@pytest.mark.parametrize(("kind", "text", "value"), READ)
def test_a_text_is_read_or_refused_with_what_was_expected(kind: ParamType[Any], text: str, value: object) -> None:
    """Whether values can work together is said later."""
    if value is not None:
        assert kind.convert(text, None, None) == value
        return
    with pytest.raises(BadParameter, match=f"^got '{text}', expected "):
        kind.convert(text, None, None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"renew_at": "7/3"}, "--renew-at: got 2.33333, which renews after expiry; expected a fraction"),
        ({"renew_at": "0/3"}, "--renew-at: got 0, which renews at once, again and again; expected a fraction"),
        (
            {"lifetime": "186m"},
            "--lifetime: got 3:06:00, of which 1:02:00 are left when it is renewed; expected more than the 1:02:00",
        ),
        (
            {"lifetime": "1826d"},
            "--lifetime: got 1826 days, 0:00:00, expected at most 1825 days, 0:00:00, half of the authority's",
        ),
        (
            {"lifetime": "1d", "propagation_seconds": "30000"},
            "--lifetime: got 1 day, 0:00:00, of which 8:00:00 are left when it is renewed; expected more than",
        ),
    ],
    ids=[
        "after expiry",
        "at once",
        "lifetime too short",
        "longer than authorities",
        "propagation too long",
    ],
)
def test_times_that_can_not_work_together_are_refused(given: dict[str, str], sentence: str) -> None:
    """The sentence has the figures, and what to change."""
    with pytest.raises(UsageError) as caught:
        keeping(**given)
    assert caught.value.message.startswith(sentence)


def test_every_option_says_where_it_can_come_from() -> None:
    """The prefix separates the two programs' variables."""
    for option in (each for command in COMMANDS.commands.values() for each in command.params):
        assert option.envvar == "KUBEVIRT_COSCHEDULE_CERTS_" + option.opts[0][2:].replace("-", "_").upper()
        assert option.help
        assert option.help.endswith(".")
