"""Flags and environment of the certificate controller: each problem is one sentence, with what to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from click import UsageError
from support.drivers.command_lines import values

from certs import settings
from certs.cli import COMMANDS
from certs.settings import ControllerSettings


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
    assert (policy.propagation, policy.retire) == (timedelta(minutes=2), timedelta(hours=1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("15m", timedelta(minutes=15)),
        ("90s", timedelta(0, 90)),
    ],
)
def test_a_duration_has_a_unit(text: str, expected: timedelta) -> None:
    """Days, hours, minutes, seconds."""
    assert settings.duration(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("2/3", 2 / 3), ("0.5", 0.5), (".25", 0.25), ("1", 1.0), ("0", 0.0)])
def test_a_fraction_is_a_quotient_or_a_decimal_number(text: str, expected: float) -> None:
    """Whether it can work is not for the parser to say."""
    assert settings.fraction(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((settings.duration, text) for text in ("", "30", "d", "0d", "-1d", "1.5d", "1w", "30 d", "1d12h")),
        *((settings.fraction, text) for text in ("", "2", "1/0", "half", "-0.5", "3.1")),
        *((settings.dns_name, text) for text in ("", "Web", "web/x", "-web", "web.", "a_b")),
    ],
)
def test_what_can_not_be_read_is_refused_with_what_was_expected(parse: Any, text: str) -> None:
    """The parser returns the rest of a sentence that starts with the name of the option."""
    with pytest.raises(ValueError, match=r"^expected "):
        parse(text)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"renew_at": "1"}, "--renew-at: got 1, which renews after expiry; expected a fraction"),
        ({"renew_at": "7/3"}, "--renew-at: got 2.33333, which renews after expiry; expected a fraction"),
        ({"renew_at": "0"}, "--renew-at: got 0, which renews at once, again and again; expected a fraction"),
        (
            {"lifetime": "90s"},
            "--lifetime: got 0:01:30, of which 0:00:30 are left when it is renewed; expected more than the 1:02:00",
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
        "long after",
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


@pytest.mark.parametrize(("lifetime", "works"), [("3h", False), ("186m", False), ("187m", True)])
def test_a_new_authority_fits_into_what_is_left_or_is_refused(lifetime: str, works: bool) -> None:  # noqa: FBT001 - a column
    """A third of the lifetime must be more than propagation and retirement, 62 minutes by default."""
    if works:
        assert keeping(lifetime=lifetime).policy.lifetime
    else:
        with pytest.raises(UsageError):
            keeping(lifetime=lifetime)


def test_every_option_says_where_it_can_come_from() -> None:
    """The prefix separates the two programs' variables."""
    for option in (each for command in COMMANDS.commands.values() for each in command.params):
        assert option.envvar == "KUBEVIRT_COSCHEDULE_CERTS_" + option.opts[0][2:].replace("-", "_").upper()
        assert option.help
        assert option.help.endswith(".")
